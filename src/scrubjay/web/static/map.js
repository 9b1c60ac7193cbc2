// The map of what the player has seen, with an arrow at the player's pose.

import { element } from "./dom.js";

const SIZE = 400; // Pixels of the canvas.
const CELL_M = 0.1; // Meters per pixel of the server's image.
const SIGHT_M = 1.1; // Length of the field of view as drawn.

export class SeenMap {
  constructor() {
    this.node = element("canvas", { width: SIZE, height: SIZE, className: "map", role: "img" });
    this.node.setAttribute("aria-label", "Map of what you have seen, north up");
    this.context = this.node.getContext("2d");
    this.image = null;
  }

  /** Draws a state's map and pose. */
  async update({ map, bounds, place: pose }) {
    if (bounds) this.bounds = bounds;
    this.pose = pose;
    if (map) {
      const image = (this.newest = new Image());
      image.src = map;
      await image.decode();
      if (image !== this.newest) return;
      this.image = image;
    }
    if (this.image && this.bounds && this.pose) this.draw();
  }

  draw() {
    const { context, image } = this;
    const [west, , , north] = this.bounds;
    const scale = SIZE / (Math.max(image.width, image.height) * CELL_M);
    const left = (SIZE - image.width * CELL_M * scale) / 2;
    const top = (SIZE - image.height * CELL_M * scale) / 2;
    context.clearRect(0, 0, SIZE, SIZE);
    context.imageSmoothingEnabled = false;
    context.drawImage(image, left, top, image.width * CELL_M * scale, image.height * CELL_M * scale);
    const [x, y, rotation] = this.pose;
    arrow(context, left + (x - west) * scale, top + (north - y) * scale, rotation, {
      color: "#1f5fae", size: 14, sight: SIGHT_M * scale,
    });
  }
}

/** Draws an arrow, rotated clockwise from north; `sight` adds the field of view as a fan of that radius. */
export function arrow(context, x, y, degrees, { color, size, sight = 0 }) {
  context.save();
  context.translate(x, y);
  context.rotate((degrees * Math.PI) / 180);
  context.fillStyle = color;
  if (sight) {
    context.globalAlpha = 0.18;
    context.beginPath();
    context.moveTo(0, 0);
    context.arc(0, 0, sight, (-3 * Math.PI) / 4, -Math.PI / 4);
    context.fill();
    context.globalAlpha = 1;
  }
  context.beginPath();
  context.moveTo(0, -size);
  context.lineTo(size * 0.75, size * 0.8);
  context.lineTo(0, size * 0.4);
  context.lineTo(-size * 0.75, size * 0.8);
  context.closePath();
  context.strokeStyle = "white";
  context.lineWidth = size / 3.5;
  context.stroke();
  context.fill();
  context.restore();
}
