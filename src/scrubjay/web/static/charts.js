// An agent's internals: a line chart over the steps for each value, with its number at the current step. A value of one step
// alone, such as a choice, is a number and the step.

import { element } from "./dom.js";

const WIDTH = 1200;
const HEIGHT = 96;
const MARGIN = 8;

export class Charts {
  /** `internals` holds a list by name with a number or null per step; a click on a chart calls go(step). What the agent
   * attends to is drawn on the plan instead. */
  constructor(internals, total, go) {
    this.total = total;
    const shown = Object.entries(internals).filter(([name]) => name !== "attended");
    const once = (values) => values.filter(Number.isFinite).length === 1;
    this.charts = shown.filter(([, values]) => !once(values)).map(([name, values]) => this.chart(name, values, go));
    const single = shown.filter(([, values]) => once(values)).map(([name, values]) => this.single(name, values, go));
    this.node = element("section", { className: "charts" }, element("h2", {}, "Agent internals"),
      ...this.charts.map(({ node }) => node), ...single);
  }

  /** Marks step k in all charts. */
  show(k) {
    for (const { values, canvas, output, line } of this.charts) {
      const context = canvas.getContext("2d");
      context.clearRect(0, 0, WIDTH, HEIGHT);
      context.strokeStyle = "#1f5fae";
      context.lineWidth = 2.5;
      context.stroke(line);
      context.fillStyle = "#b4551d";
      context.fillRect(this.x(k) - 1.5, 0, 3, HEIGHT);
      output.textContent = Number.isFinite(values[k]) ? values[k].toPrecision(4) : "–";
    }
  }

  single(name, values, go) {
    const k = values.findIndex(Number.isFinite);
    const button = element("button", { type: "button", className: "small" }, `step ${k + 1}`);
    button.addEventListener("click", () => go(k));
    return element("p", { className: "single" }, `${name} `, element("output", {}, values[k].toPrecision(4)), button);
  }

  x(k) {
    return MARGIN + (k / Math.max(1, this.total - 1)) * (WIDTH - 2 * MARGIN);
  }

  chart(name, values, go) {
    const canvas = element("canvas", { width: WIDTH, height: HEIGHT, role: "img", "aria-label": `${name} by step` });
    const output = element("output", {});
    canvas.addEventListener("click", (event) => {
      const box = canvas.getBoundingClientRect();
      go(Math.round(((event.clientX - box.left) / box.width) * (this.total - 1)));
    });
    const finite = values.filter(Number.isFinite);
    const low = Math.min(...finite);
    const span = Math.max(...finite) - low || 1;
    const line = new Path2D();
    let connected = false;
    values.forEach((value, k) => {
      const present = Number.isFinite(value);
      const y = HEIGHT - MARGIN - ((value - low) / span) * (HEIGHT - 2 * MARGIN);
      if (present && connected) line.lineTo(this.x(k), y);
      else if (present && Number.isFinite(values[k + 1])) line.moveTo(this.x(k), y);
      else if (present) dot(line, this.x(k), y); // A value between two steps without one.
      connected = present;
    });
    const node = element("figure", {}, element("figcaption", {}, `${name} `, output), canvas);
    return { node, canvas, output, values, line };
  }
}

function dot(line, x, y) {
  line.moveTo(x + 3, y);
  line.arc(x, y, 3, 0, 2 * Math.PI);
}
