// What the player sees: the picture, enlarged; where they point; and what is said over it.

import { element } from "./dom.js";

const EDGE = 896; // Pixels of the canvas: four times the agents' own, and the browser smooths the rest.

export class View {
  /** `point(x, y)` is called with shares of the picture's sides. */
  constructor(point) {
    this.canvas = element("canvas", { width: EDGE, height: EDGE, className: "picture", role: "img" });
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
    this.shown = 0;
    this.drawn = 0;
  }

  /** Shows a picture; one that is decoded too late is left out. */
  async show(blob, steps) {
    const number = (this.shown += 1);
    const bitmap = await createImageBitmap(blob);
    if (number > this.drawn) {
      this.drawn = number;
      const brush = this.canvas.getContext("2d");
      brush.imageSmoothingQuality = "high";
      brush.drawImage(bitmap, 0, 0, EDGE, EDGE);
      this.canvas.dataset.steps = steps;
    }
    bitmap.close();
  }

  /** Says something over the picture, for a while. */
  say(text, tone = "") {
    clearTimeout(this.fading);
    this.notice.textContent = text;
    this.notice.hidden = !text;
    this.notice.dataset.tone = tone;
    if (text) this.fading = setTimeout(() => this.say(""), 6000);
  }

  /** Covers the picture with something, or with nothing. */
  coverWith(...children) {
    this.cover.replaceChildren(...children);
    this.cover.hidden = !children.length;
  }

  /** A ring where the person pointed. */
  mark(x, y) {
    const ring = element("span", { className: "ring" });
    ring.style.left = `${x * 100}%`;
    ring.style.top = `${y * 100}%`;
    ring.addEventListener("animationend", () => ring.remove());
    this.node.append(ring);
  }
}

/** A cover's message: a heading, a sentence, and a bar or buttons. */
export function message(title, text = "", ...rest) {
  return element("div", { className: "message" }, element("h2", {}, title), text && element("p", {}, text), ...rest);
}
