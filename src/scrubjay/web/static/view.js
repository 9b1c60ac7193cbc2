// The player's view: the enlarged image, clicks on it, and notices and dialogs over it.

import { element } from "./dom.js";

const SIZE = 896; // Pixels of the canvas, four times the image; the browser smooths the rest.

export class View {
  /** `point(x, y)` is called on clicks, with fractions of the image's sides; it returns whether they have an effect. */
  constructor(point) {
    this.canvas = element("canvas", { width: SIZE, height: SIZE, className: "picture", role: "img" });
    this.canvas.setAttribute("aria-label", "What you see in the room");
    this.notice = element("p", { className: "notice", role: "status", "aria-live": "polite", hidden: true });
    this.cover = element("div", { className: "cover", hidden: true });
    this.node = element("div", { className: "view" }, this.canvas, this.notice, this.cover);
    this.canvas.addEventListener("click", (event) => {
      const box = this.canvas.getBoundingClientRect();
      const x = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      const y = Math.min(1, Math.max(0, (event.clientY - box.top) / box.height));
      if (point(x, y)) this.mark(x, y);
    });
    this.received = 0;
    this.drawn = 0;
  }

  /** Shows an image, unless a later one was decoded first. */
  async show(blob, steps) {
    const number = (this.received += 1);
    const bitmap = await createImageBitmap(blob);
    if (number > this.drawn) {
      this.drawn = number;
      const context = this.canvas.getContext("2d");
      context.imageSmoothingQuality = "high";
      context.drawImage(bitmap, 0, 0, SIZE, SIZE);
      this.canvas.dataset.steps = steps;
    }
    bitmap.close();
  }

  /** Shows a notice over the image for six seconds. */
  notify(text) {
    clearTimeout(this.fading);
    this.notice.textContent = text;
    this.notice.hidden = !text;
    if (text) this.fading = setTimeout(() => this.notify(""), 6000);
  }

  /** Covers the image with these nodes, or uncovers it. */
  coverWith(...children) {
    this.cover.replaceChildren(...children);
    this.cover.hidden = !children.length;
  }

  /** Shows a ring where the player clicked. */
  mark(x, y) {
    const ring = element("span", { className: "ring" });
    ring.style.left = `${x * 100}%`;
    ring.style.top = `${y * 100}%`;
    ring.addEventListener("animationend", () => ring.remove());
    this.node.append(ring);
  }
}

/** A dialog over the image: a heading, a sentence, and a progress bar or buttons. */
export function dialog(title, text = "", ...rest) {
  return element("div", { className: "dialog" }, element("h2", {}, title), text && element("p", {}, text), ...rest);
}
