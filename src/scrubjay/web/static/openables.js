// What can be opened in the picture: found under the pointer, chosen by keys, and lit up.

import { element } from "./dom.js";

const TOLERANCE = 5 / 224; // Of the picture's side, by which a click may miss a thing, as on the server.
const SIZE = 448; // Pixels of the canvas, which smooths the labels.
const COLOR = [255, 214, 64, 255];
const LINE = 3;
const TINT = 0.25;

export class Openables {
  constructor() {
    this.canvas = element("canvas", { className: "lit", width: SIZE, height: SIZE, "aria-hidden": "true" });
    this.clear();
  }

  clear() {
    this.received = (this.received ?? 0) + 1;
    this.size = 0;
    this.labels = new Uint8Array();
    this.things = [];
    this.light(null);
  }

  /** Takes a state's openables, or null; resolves when they are decoded. */
  async update(openables) {
    this.clear();
    if (!openables) return;
    const number = this.received;
    const labels = await inflate(openables.labels);
    if (number !== this.received) return;
    Object.assign(this, { labels, size: openables.size, things: openables.things });
    this.light(null);
  }

  /** The number of the thing that a click at fractions (x, y) of the picture would open, or null. */
  at(x, y) {
    const column = Math.min(Math.floor(x * this.size), this.size - 1);
    const row = Math.min(Math.floor(y * this.size), this.size - 1);
    const radius = Math.max(1, Math.round(TOLERANCE * this.size));
    let [nearest, distance] = [0, Infinity];
    for (let i = Math.max(0, row - radius); i <= Math.min(this.size - 1, row + radius); i += 1) {
      for (let j = Math.max(0, column - radius); j <= Math.min(this.size - 1, column + radius); j += 1) {
        const label = this.labels[i * this.size + j];
        const away = Math.hypot(i - row, j - column);
        if (label && away < distance) [nearest, distance] = [label, away];
      }
    }
    return nearest && this.things[nearest - 1].opens ? nearest - 1 : null;
  }

  /** Lights up a thing by its number; null lights up nothing. */
  light(number) {
    this.lit = number;
    this.canvas.hidden = number === null;
    this.canvas.dataset.thing = number === null ? "" : this.things[number].name;
    if (number === null) return;
    const { size, labels, canvas } = this;
    const mask = new OffscreenCanvas(size, size);
    const image = new ImageData(size, size);
    for (let k = 0; k < labels.length; k += 1) if (labels[k] === number + 1) image.data.set(COLOR, 4 * k);
    mask.getContext("2d").putImageData(image, 0, 0);
    // A line around it: the mask drawn in all directions, less the mask itself; then a tint on it.
    const context = canvas.getContext("2d");
    const draw = (dx = 0, dy = 0) => context.drawImage(mask, dx, dy, canvas.width, canvas.height);
    context.clearRect(0, 0, canvas.width, canvas.height);
    for (let turn = 0; turn < 16; turn += 1) draw(LINE * Math.cos(turn * Math.PI / 8), LINE * Math.sin(turn * Math.PI / 8));
    context.globalCompositeOperation = "destination-out";
    draw();
    context.globalCompositeOperation = "destination-over";
    context.globalAlpha = TINT;
    draw();
    context.globalAlpha = 1;
    context.globalCompositeOperation = "source-over";
  }

  /** Lights up the next thing that opens, from left to right, or the previous one; returns it, with words about it. */
  next(backwards = false) {
    const opening = this.things.flatMap(({ opens }, number) => (opens ? [number] : []));
    if (!opening.length) return null;
    const at = opening.indexOf(this.lit);
    const step = backwards ? -1 : 1;
    const chosen = at < 0 ? (backwards ? opening.length - 1 : 0) : (at + step + opening.length) % opening.length;
    this.light(opening[chosen]);
    const { name, x, y } = this.things[this.lit];
    const side = x < 1 / 3 ? "left" : x > 2 / 3 ? "right" : "middle";
    const height = y < 1 / 3 ? "top " : y > 2 / 3 ? "bottom " : "";
    return `${name.charAt(0).toUpperCase()}${name.slice(1)}, ${height}${side}: ${chosen + 1} of ${opening.length}`;
  }

  /** The thing that is lit, or null. */
  get chosen() {
    return this.lit === null ? null : this.things[this.lit];
  }
}

/** The bytes of deflated data in base64. */
async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
