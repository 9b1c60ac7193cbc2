// The floor plan with the paths of hider, seeker and object up to a step, and what an agent attends to on its map.

import { element } from "./dom.js";
import { arrow } from "./map.js";

const MARGIN_M = 0.2; // The plan's margin around the room.
const JUMP_M = 0.6; // Longer steps are teleports and are not drawn.
const COLORS = { hider: "#1f5fae", seeker: "#b4551d", object: "#a01f4c", map: "#8a3fa0" };

export class Plan {
  constructor(address, replay) {
    this.replay = replay;
    this.canvas = element("canvas", { className: "plan", role: "img" });
    this.canvas.setAttribute("aria-label", "Floor plan with the players' paths");
    const key = (who, text) => element("span", { className: `key key-${who}` }, text);
    this.attended = replay.internals?.attended ?? [];
    this.node = element("figure", { className: "side" },
      element("figcaption", {}, element("strong", {}, "Plan"), " north up"), this.canvas,
      element("p", { className: "caption" }, key("hider", "hider"), key("seeker", "seeker"), key("object", "object"),
        this.attended.length ? key("map", "attention to its map") : ""));
    this.paths = { hider: [], seeker: [], object: [] };
    replay.steps.forEach(({ stage, object }, k) => {
      this.paths[stage === "S" ? "seeker" : "hider"].push([k, replay.steps[k].place]);
      if (object) this.paths.object.push([k, object]);
    });
    this.image = new Image();
    this.image.onload = () => {
      this.canvas.width = this.image.width * 2;
      this.canvas.height = this.image.height * 2;
      this.draw();
    };
    this.image.src = address;
  }

  /** Draws step k; `hider` and `seeker` are the last steps of each so far, or -1. */
  show(k, hider, seeker) {
    this.shown = { k, hider, seeker };
    if (this.image.complete && this.image.width) this.draw();
  }

  draw() {
    const context = this.canvas.getContext("2d");
    const { width, height } = this.canvas;
    const { k, hider, seeker } = this.shown;
    const { steps, start } = this.replay;
    context.drawImage(this.image, 0, 0, width, height);
    context.lineJoin = context.lineCap = "round";
    for (const who of ["hider", "seeker", "object"]) {
      const points = this.paths[who].filter(([step]) => step <= k).map(([, place]) => place);
      this.line(context, who === "object" ? points : [start, ...points], COLORS[who], width / 140);
    }
    this.drawAttention(context, this.attended[k] ?? [], width / 50);
    const object = this.paths.object.findLast(([step]) => step <= k);
    if (object) this.diamond(context, object[1], width / 60);
    for (const [who, step] of [["hider", hider], ["seeker", seeker]]) {
      if (step < 0) continue;
      const { place } = steps[step];
      const [x, y] = this.pixel(place);
      context.globalAlpha = step === k ? 1 : 0.45;
      const sight = step === k ? width / 8 : 0;
      arrow(context, x, y, place[2], { color: COLORS[who], size: width / 38, sight });
      context.globalAlpha = 1;
    }
  }

  /** Discs on the positions of the map; their areas are the attention to each, relative to the most. */
  drawAttention(context, attended, size) {
    context.fillStyle = COLORS.map;
    context.globalAlpha = 0.5;
    const most = attended[0]?.[2] || 1;
    for (const [x, y, share] of attended) {
      context.beginPath();
      context.arc(...this.pixel([x, y]), size * Math.sqrt(share / most), 0, 2 * Math.PI);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  pixel([x, y]) {
    const [west, south, east, north] = this.replay.bounds;
    return [
      ((x - west + MARGIN_M) / (east - west + 2 * MARGIN_M)) * this.canvas.width,
      ((north + MARGIN_M - y) / (north - south + 2 * MARGIN_M)) * this.canvas.height,
    ];
  }

  line(context, points, color, width) {
    if (points.length < 2) return;
    context.beginPath();
    points.forEach((place, k) => {
      const jumps = !k || Math.hypot(place[0] - points[k - 1][0], place[1] - points[k - 1][1]) > JUMP_M;
      if (jumps) context.moveTo(...this.pixel(place));
      else context.lineTo(...this.pixel(place));
    });
    context.strokeStyle = color;
    context.lineWidth = width;
    context.globalAlpha = 0.7;
    context.stroke();
    context.globalAlpha = 1;
  }

  diamond(context, place, size) {
    const [x, y] = this.pixel(place);
    context.save();
    context.translate(x, y);
    context.rotate(Math.PI / 4);
    context.fillStyle = COLORS.object;
    context.strokeStyle = "white";
    context.lineWidth = size / 3;
    context.strokeRect(-size / 2, -size / 2, size, size);
    context.fillRect(-size / 2, -size / 2, size, size);
    context.restore();
  }
}
