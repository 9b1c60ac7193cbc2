// The room from above: the ways of hider and seeker, and of the object, up to a step.

import { element } from "./dom.js";
import { arrow } from "./map.js";

const MARGIN_M = 0.2; // The picture shows this much more than the room on every side.
const JUMP_M = 0.6; // Who is further away a step later did not walk there.
const COLORS = { hider: "#1f5fae", seeker: "#b4551d", object: "#a01f4c" };


export class Plan {
  constructor(address, told) {
    this.told = told;
    this.canvas = element("canvas", { className: "plan", role: "img" });
    this.canvas.setAttribute("aria-label", "The room from above, with the players' ways");
    const key = (who, text) => element("span", { className: `key key-${who}` }, text);
    this.node = element("figure", { className: "side" },
      element("figcaption", {}, element("strong", {}, "Plan"), " north is up"), this.canvas,
      element("p", { className: "said" }, key("hider", "hider"), key("seeker", "seeker"), key("object", "object")));
    this.ways = { hider: [], seeker: [], object: [] };
    told.steps.forEach(({ stage, object }, k) => {
      this.ways[stage === "S" ? "seeker" : "hider"].push([k, told.steps[k].place]);
      if (object) this.ways.object.push([k, object]);
    });
    this.picture = new Image();
    this.picture.onload = () => {
      this.canvas.width = this.picture.width * 2;
      this.canvas.height = this.picture.height * 2;
      this.draw();
    };
    this.picture.src = address;
  }

  /** Draws step k; hider and seeker are the last steps of each, or -1. */
  show(k, hider, seeker) {
    this.now = { k, hider, seeker };
    if (this.picture.complete && this.picture.width) this.draw();
  }

  draw() {
    const brush = this.canvas.getContext("2d");
    const { width, height } = this.canvas;
    const { k, hider, seeker } = this.now;
    const { steps, start } = this.told;
    brush.drawImage(this.picture, 0, 0, width, height);
    brush.lineJoin = brush.lineCap = "round";
    for (const who of ["hider", "seeker", "object"]) {
      const points = this.ways[who].filter(([step]) => step <= k).map(([, place]) => place);
      this.line(brush, who === "object" ? points : [start, ...points], COLORS[who], width / 140);
    }
    const object = this.ways.object.findLast(([step]) => step <= k);
    if (object) this.gem(brush, object[1], width / 60);
    for (const [who, step] of [["hider", hider], ["seeker", seeker]]) {
      if (step < 0) continue;
      const { place } = steps[step];
      const [x, y] = this.pixel(place);
      brush.globalAlpha = step === k ? 1 : 0.45;
      const sight = step === k ? width / 8 : 0;
      arrow(brush, x, y, place[2], { color: COLORS[who], size: width / 38, sight });
      brush.globalAlpha = 1;
    }
  }

  pixel([x, y]) {
    const [west, south, east, north] = this.told.bounds;
    return [
      ((x - west + MARGIN_M) / (east - west + 2 * MARGIN_M)) * this.canvas.width,
      ((north + MARGIN_M - y) / (north - south + 2 * MARGIN_M)) * this.canvas.height,
    ];
  }

  line(brush, points, color, width) {
    if (points.length < 2) return;
    brush.beginPath();
    points.forEach((place, k) => {
      const jumps = !k || Math.hypot(place[0] - points[k - 1][0], place[1] - points[k - 1][1]) > JUMP_M;
      if (jumps) brush.moveTo(...this.pixel(place));
      else brush.lineTo(...this.pixel(place));
    });
    brush.strokeStyle = color;
    brush.lineWidth = width;
    brush.globalAlpha = 0.7;
    brush.stroke();
    brush.globalAlpha = 1;
  }

  gem(brush, place, size) {
    const [x, y] = this.pixel(place);
    brush.save();
    brush.translate(x, y);
    brush.rotate(Math.PI / 4);
    brush.fillStyle = COLORS.object;
    brush.strokeStyle = "white";
    brush.lineWidth = size / 3;
    brush.strokeRect(-size / 2, -size / 2, size, size);
    brush.fillRect(-size / 2, -size / 2, size, size);
    brush.restore();
  }
}
