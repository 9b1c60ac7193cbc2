// A replayed record: hider and seeker side by side, the plan, a scrubber, and what went on inside an agent.

import { Charts } from "./charts.js";
import { element } from "./dom.js";
import { Frames } from "./frames.js";
import { Plan } from "./plan.js";
import { ACTIONS, STAGES, count } from "./words.js";

const SPEEDS = [["2", "slow"], ["6", "normal"], ["15", "fast"], ["40", "very fast"]]; // Steps a second.

export class Replay {
  constructor(root, address, told) {
    this.told = told;
    this.steps = told.steps;
    this.at = 0;
    this.timer = 0;
    this.sides = [
      new Side("Hider", told.players.hider, "hider", told.size),
      new Side("Seeker", told.players.seeker, "seeker", told.size),
    ];
    this.lastOf = this.lasts();
    this.frames = new Frames(`${address}/frames`, this.steps.length);
    this.plan = new Plan(`${address}/plan`, told);
    this.charts = told.internals ? new Charts(told.internals, this.steps.length, (k) => this.go(k)) : null;
    root.replaceChildren(
      element("h1", {}, `${told.goal} in ${told.scene}`, " ",
        element("span", { className: "quiet" }, this.outcome())),
      element("div", { className: "stage" }, ...this.sides.map((side) => side.node), this.plan.node),
      this.timeline(),
      this.charts?.node ?? "");
    this.press = (event) => this.key(event);
    document.addEventListener("keydown", this.press);
    this.go(0);
  }

  close() {
    this.stop();
    document.removeEventListener("keydown", this.press);
  }

  /** Shows step k. */
  go(k) {
    this.at = Math.max(0, Math.min(this.steps.length - 1, k));
    const [hider, seeker] = this.lastOf[this.at];
    this.sides[0].show(hider, this.steps[hider], this.frames, hider === this.at);
    this.sides[1].show(seeker, this.steps[seeker], this.frames, seeker === this.at);
    this.plan.show(this.at, hider, seeker);
    this.charts?.show(this.at);
    this.frames.ahead(this.at);
    this.slider.value = this.at;
    const step = this.steps[this.at];
    this.slider.setAttribute("aria-valuetext", `step ${this.at + 1}, ${STAGES[step.stage]}`);
    this.counter.textContent = `${this.at + 1} / ${this.steps.length}`;
    this.stageName.textContent = STAGES[step.stage];
    this.stageName.dataset.stage = step.stage;
  }

  // Inside.

  /** For each step the last step of the hider and of the seeker up to it, or -1. */
  lasts() {
    let hider = -1;
    let seeker = -1;
    return this.steps.map(({ stage }, k) => {
      if (stage === "S") seeker = k;
      else hider = k;
      return [hider, seeker];
    });
  }

  outcome() {
    const sought = this.steps.filter(({ stage }) => stage === "S").length;
    if (!sought) return "nobody sought";
    return this.told.found ? `found in ${count(sought, "step")}` : `not found in ${count(sought, "step")}`;
  }

  timeline() {
    this.slider = element("input", { type: "range", min: 0, max: this.steps.length - 1, value: 0, id: "scrubber",
      "aria-label": "Step of the game" });
    this.slider.addEventListener("input", () => {
      this.stop();
      this.go(Number(this.slider.value));
    });
    this.counter = element("span", { className: "counter", id: "counter" });
    this.stageName = element("span", { className: "stageName" });
    this.playing = element("button", { type: "button", className: "primary", id: "playing" }, "Play");
    this.playing.addEventListener("click", () => this.toggle());
    this.speed = element("select", { "aria-label": "Speed" },
      ...SPEEDS.map(([value, text]) => element("option", { value, selected: text === "normal" }, text)));
    this.speed.addEventListener("change", () => this.timer && (this.stop(), this.start()));
    const turn = (sign, label, by) => {
      const made = element("button", { type: "button", "aria-label": label }, sign);
      made.addEventListener("click", () => {
        this.stop();
        this.go(this.at + by);
      });
      return made;
    };
    return element("div", { className: "timeline" },
      element("div", { className: "track" }, this.bands(), this.slider),
      element("div", { className: "row" }, turn("‹", "One step back", -1), this.playing,
        turn("›", "One step on", 1), this.speed, this.counter, this.stageName,
        element("span", { className: "quiet keyhint" },
          element("kbd", {}, "Space"), " ", element("kbd", {}, "←"), " ", element("kbd", {}, "→"))));
  }

  /** The stages as colored bands over the scrubber. */
  bands() {
    const bands = element("div", { className: "bands", "aria-hidden": "true" });
    for (let from = 0, k = 1; k <= this.steps.length; k += 1) {
      if (k < this.steps.length && this.steps[k].stage === this.steps[from].stage) continue;
      const band = element("span", { "data-stage": this.steps[from].stage, title: STAGES[this.steps[from].stage] });
      band.style.flexGrow = k - from;
      bands.append(band);
      from = k;
    }
    return bands;
  }

  toggle() {
    if (this.timer) this.stop();
    else this.start();
  }

  start() {
    if (this.at === this.steps.length - 1) this.go(0);
    this.playing.textContent = "Pause";
    this.timer = setInterval(() => {
      if (this.at === this.steps.length - 1) this.stop();
      // A slow connection slows the game down rather than leaving pictures out.
      else if (this.frames.has(this.at + 1)) this.go(this.at + 1);
      else this.frames.ahead(this.at);
    }, 1000 / Number(this.speed.value));
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    if (this.playing) this.playing.textContent = "Play";
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, button, a")) return;
    const way = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (way !== undefined) {
      this.stop();
      this.go(this.at + way);
    } else if (event.key === " ") {
      this.toggle();
    } else {
      return;
    }
    event.preventDefault();
  }
}

/** One player's view. */
class Side {
  constructor(title, name, role, size) {
    this.picture = element("canvas", { width: 2 * size, height: 2 * size, className: "picture", role: "img" });
    this.picture.setAttribute("aria-label", `What the ${role} sees`);
    this.said = element("p", { className: "said" });
    this.node = element("figure", { className: "side", "data-role": role },
      element("figcaption", {}, element("strong", {}, title), ` ${name ?? ""}`), this.picture, this.said);
    this.shown = null;
  }

  /** Shows picture k, or none if k is -1, and what the step was. */
  async show(k, step, frames, acting) {
    this.node.classList.toggle("acting", acting);
    this.said.textContent = step ? telling(step) : "not yet";
    this.said.classList.toggle("failed", Boolean(step) && !step.success);
    if (this.shown === k) return;
    this.shown = k;
    const brush = this.picture.getContext("2d");
    const image = k < 0 ? null : await frames.get(k);
    if (this.shown !== k) return;
    brush.imageSmoothingQuality = "high";
    brush.clearRect(0, 0, this.picture.width, this.picture.height);
    if (image) brush.drawImage(image, 0, 0, this.picture.width, this.picture.height);
    this.picture.dataset.frame = k;
  }
}

/** What a step is called where that differs from what its button says. */
const TOLD = {
  OpenAt: "Opens", PlaceAt: "Begins to place it", RotateHand: "Turns it", ClaimVisible: "Claims to see it",
  ReadyForSeeker: "Ready for the seeker", "": "Nothing",
};

/** A step in words. */
function telling({ action, success, hit }) {
  const kind = action.split("|")[0];
  const text = kind.startsWith("PS") ? "Chooses where to stand" : TOLD[kind] ?? ACTIONS[action]?.label ?? kind;
  return `${text}${success ? "" : " · failed"}${hit ? " · hits the target" : ""}`;
}
