// What an agent recorded about itself: a line over the steps for each number, and its value at the step shown.

import { element } from "./dom.js";

const WIDTH = 1200;
const HEIGHT = 96;
const MARGIN = 8;

export class Charts {
  /** `internals` holds a number per step by name; a click on a chart goes to its step. */
  constructor(internals, total, go) {
    this.total = total;
    this.charts = Object.entries(internals).map(([name, values]) => this.chart(name, values, go));
    this.node = element("section", { className: "charts" }, element("h2", {}, "Inside the agent"),
      ...this.charts.map(({ node }) => node));
  }

  /** Marks step k in all of them. */
  show(k) {
    for (const { values, canvas, said, line } of this.charts) {
      const brush = canvas.getContext("2d");
      brush.clearRect(0, 0, WIDTH, HEIGHT);
      brush.strokeStyle = "#1f5fae";
      brush.lineWidth = 2.5;
      brush.stroke(line);
      brush.fillStyle = "#b4551d";
      brush.fillRect(this.x(k) - 1.5, 0, 3, HEIGHT);
      said.textContent = Number.isFinite(values[k]) ? values[k].toPrecision(4) : "–";
    }
  }

  x(k) {
    return MARGIN + (k / Math.max(1, this.total - 1)) * (WIDTH - 2 * MARGIN);
  }

  chart(name, values, go) {
    const canvas = element("canvas", { width: WIDTH, height: HEIGHT, role: "img", "aria-label": `${name} by step` });
    const said = element("output", {});
    canvas.addEventListener("click", (event) => {
      const box = canvas.getBoundingClientRect();
      go(Math.round(((event.clientX - box.left) / box.width) * (this.total - 1)));
    });
    const finite = values.filter(Number.isFinite);
    const low = Math.min(...finite);
    const span = Math.max(...finite) - low || 1;
    const line = new Path2D();
    let pen = false;
    values.forEach((value, k) => {
      const there = Number.isFinite(value);
      const y = HEIGHT - MARGIN - ((value - low) / span) * (HEIGHT - 2 * MARGIN);
      if (there && pen) line.lineTo(this.x(k), y);
      else if (there) line.moveTo(this.x(k), y);
      pen = there;
    });
    const node = element("figure", {}, element("figcaption", {}, `${name} `, said), canvas);
    return { node, canvas, said, values, line };
  }
}
