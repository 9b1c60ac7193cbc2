// The small map of what was seen, and an arrow where the player stands.

import { element } from "./dom.js";

const EDGE = 400; // Pixels of the canvas.
const PIXEL_M = 0.1; // Metres along a pixel of the server's picture.
const SIGHT_M = 1.1; // Length of the drawn field of view.

export class SeenMap {
  constructor() {
    this.node = element("canvas", { width: EDGE, height: EDGE, className: "map", role: "img" });
    this.node.setAttribute("aria-label", "Map of what you have seen, north up");
    this.brush = this.node.getContext("2d");
    this.picture = null;
  }

  /** Takes over a state's map, bounds and place, and draws them. */
  async update({ map, bounds, place }) {
    if (bounds) this.bounds = bounds;
    this.place = place;
    if (map) {
      const picture = (this.newest = new Image());
      picture.src = map;
      await picture.decode();
      if (picture !== this.newest) return;
      this.picture = picture;
    }
    if (this.picture && this.bounds && this.place) this.draw();
  }

  draw() {
    const { brush, picture } = this;
    const [west, , , north] = this.bounds;
    const scale = EDGE / (Math.max(picture.width, picture.height) * PIXEL_M);
    const left = (EDGE - picture.width * PIXEL_M * scale) / 2;
    const top = (EDGE - picture.height * PIXEL_M * scale) / 2;
    brush.clearRect(0, 0, EDGE, EDGE);
    brush.imageSmoothingEnabled = false;
    brush.drawImage(picture, left, top, picture.width * PIXEL_M * scale, picture.height * PIXEL_M * scale);
    const [x, y, rotation] = this.place;
    arrow(brush, left + (x - west) * scale, top + (north - y) * scale, rotation, {
      color: "#1f5fae", size: 14, sight: SIGHT_M * scale,
    });
  }
}

/** An arrow at a point of a canvas, turned clockwise from north; with `sight`, the field of view as a fan. */
export function arrow(brush, x, y, degrees, { color, size, sight = 0 }) {
  brush.save();
  brush.translate(x, y);
  brush.rotate((degrees * Math.PI) / 180);
  brush.fillStyle = color;
  if (sight) {
    brush.globalAlpha = 0.18;
    brush.beginPath();
    brush.moveTo(0, 0);
    brush.arc(0, 0, sight, (-3 * Math.PI) / 4, -Math.PI / 4);
    brush.fill();
    brush.globalAlpha = 1;
  }
  brush.beginPath();
  brush.moveTo(0, -size);
  brush.lineTo(size * 0.75, size * 0.8);
  brush.lineTo(0, size * 0.4);
  brush.lineTo(-size * 0.75, size * 0.8);
  brush.closePath();
  brush.strokeStyle = "white";
  brush.lineWidth = size / 3.5;
  brush.stroke();
  brush.fill();
  brush.restore();
}
