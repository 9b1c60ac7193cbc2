// The player's view: the enlarged image, clicks on it, and notices and dialogs over it.

import { element } from "./dom.js";
import { Openables } from "./openables.js";

const SIZE = 896; // Pixels of the canvas, four times the image; the browser smooths the rest.

export class View {
  /**
   * `point(x, y)` is called on clicks, with fractions of the image's sides; it returns whether they have an effect.
   * `lights()` says whether a click would open something: only then does what is under the pointer light up.
   */
  constructor(point, lights) {
    this.lights = lights;
    this.pointer = null; // Where the mouse is, in fractions.
    this.openables = new Openables();
    this.canvas = element("canvas", { width: SIZE, height: SIZE, className: "picture", role: "img" });
    this.canvas.setAttribute("aria-label", "What you see in the room");
    // Screen readers announce changes only of a region that was there before: the notice is never hidden, only empty.
    this.notice = element("p", { className: "notice", role: "status" });
    this.cover = element("div", { className: "cover", hidden: true });
    this.covered = null;
    this.node = element("div", { className: "view" }, this.canvas, this.openables.canvas, this.notice, this.cover);
    this.canvas.addEventListener("click", (event) => {
      const [x, y] = this.fractions(event);
      if (point(x, y)) this.mark(x, y);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!event.movementX && !event.movementY) return; // The page moved, not the pointer: what a key chose stays lit.
      this.pointer = event.pointerType === "touch" ? null : this.fractions(event);
      this.lightUnderPointer();
    });
    this.canvas.addEventListener("pointerleave", () => {
      if (!this.pointer) return;
      this.pointer = null;
      this.lightUnderPointer();
    });
    this.received = 0;
    this.drawn = 0;
  }

  fractions({ clientX, clientY }) {
    const box = this.canvas.getBoundingClientRect();
    const within = (fraction) => Math.min(1, Math.max(0, fraction));
    return [within((clientX - box.left) / box.width), within((clientY - box.top) / box.height)];
  }

  lightUnderPointer() {
    const { openables, pointer } = this;
    openables.light(pointer && this.lights() ? openables.at(...pointer) : null);
    this.canvas.classList.toggle("opens", openables.lit !== null);
  }

  /** Takes a state's openables. */
  async updateOpenables(openables) {
    await this.openables.update(openables);
    this.lightUnderPointer();
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
    if (text) this.fading = setTimeout(() => this.notify(""), 6000);
  }

  /** Covers the image with a dialog, made only if another one is shown; `name` null uncovers it. */
  coverWith(name, create) {
    if (name === this.covered) return;
    this.covered = name;
    this.cover.hidden = name === null;
    this.cover.replaceChildren(...(name === null ? [] : [create()]));
    // What is asked of the person takes the focus, as a whole: a key held down must not press its first button.
    if (this.cover.querySelector("button, a")) this.cover.firstChild.focus();
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

let dialogs = 0;

/** A dialog over the image: a heading, a sentence, and a progress bar or buttons. */
export function dialog(title, text = "", ...rest) {
  const id = `dialog-${(dialogs += 1)}`;
  return element("div", { className: "dialog", role: "dialog", tabIndex: -1, "aria-labelledby": id },
    element("h2", { id }, title), text && element("p", {}, text), ...rest);
}
