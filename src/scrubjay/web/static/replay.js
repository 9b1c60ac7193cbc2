// A replayed game: the views of hider and seeker, the floor plan, a scrubber, and the agent's internals.

import { Charts } from "./charts.js";
import { element } from "./dom.js";
import { Frames } from "./frames.js";
import { Plan } from "./plan.js";
import { ACTIONS, STAGES, count } from "./words.js";

const SPEEDS = [["2", "Slow"], ["6", "Normal"], ["15", "Fast"], ["40", "Very fast"]]; // Steps per second.

export class Replay {
  constructor(root, address, replay) {
    this.replay = replay;
    this.steps = replay.steps;
    this.current = 0;
    this.timer = 0;
    this.views = [
      new PlayerView("Hider", replay.players.hider, "hider", replay.size),
      new PlayerView("Seeker", replay.players.seeker, "seeker", replay.size),
    ];
    this.lastSteps = this.findLastSteps();
    this.frames = new Frames(`${address}/frames`, this.steps.length);
    this.plan = new Plan(`${address}/plan`, replay);
    this.charts = replay.internals ? new Charts(replay.internals, this.steps.length, (k) => this.go(k)) : null;
    root.replaceChildren(
      element("h1", {}, `${replay.goal} in ${replay.scene}`, " ",
        element("span", { className: "quiet" }, this.outcome())),
      element("div", { className: "stage" }, ...this.views.map((view) => view.node), this.plan.node),
      this.timeline(),
      this.charts?.node ?? "");
    this.onKeydown = (event) => this.handleKey(event);
    document.addEventListener("keydown", this.onKeydown);
    this.go(0);
  }

  close() {
    this.stop();
    document.removeEventListener("keydown", this.onKeydown);
  }

  /** Shows step k. */
  go(k) {
    this.current = Math.max(0, Math.min(this.steps.length - 1, k));
    const [hider, seeker] = this.lastSteps[this.current];
    this.views[0].show(hider, this.steps[hider], this.frames, hider === this.current);
    this.views[1].show(seeker, this.steps[seeker], this.frames, seeker === this.current);
    this.plan.show(this.current, hider, seeker);
    this.charts?.show(this.current);
    this.frames.prefetch(this.current);
    this.slider.value = this.current;
    const step = this.steps[this.current];
    this.slider.setAttribute("aria-valuetext", `step ${this.current + 1}, ${STAGES[step.stage]}`);
    this.counter.textContent = `${this.current + 1} / ${this.steps.length}`;
    this.stageName.textContent = STAGES[step.stage];
    this.stageName.dataset.stage = step.stage;
  }

  /** For each step, the last steps so far of hider and seeker, or -1. */
  findLastSteps() {
    let hider = -1;
    let seeker = -1;
    return this.steps.map(({ stage }, k) => {
      if (stage === "S") seeker = k;
      else hider = k;
      return [hider, seeker];
    });
  }

  outcome() {
    const searched = this.steps.filter(({ stage }) => stage === "S").length;
    if (!searched) return "no search";
    return this.replay.found ? `found in ${count(searched, "step")}` : `not found in ${count(searched, "step")}`;
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
    this.playButton = element("button", { type: "button", className: "primary", id: "playing" }, "Play");
    this.playButton.addEventListener("click", () => this.toggle());
    this.speed = element("select", { "aria-label": "Speed" },
      ...SPEEDS.map(([value, text]) => element("option", { value, selected: text === "Normal" }, text)));
    this.speed.addEventListener("change", () => this.timer && (this.stop(), this.start()));
    const stepButton = (sign, label, by) => {
      const button = element("button", { type: "button", "aria-label": label }, sign);
      button.addEventListener("click", () => {
        this.stop();
        this.go(this.current + by);
      });
      return button;
    };
    return element("div", { className: "timeline" },
      element("div", { className: "track" }, this.bands(), this.slider),
      element("div", { className: "row" }, stepButton("‹", "Previous step", -1), this.playButton,
        stepButton("›", "Next step", 1), this.speed, this.counter, this.stageName,
        element("span", { className: "quiet keyhint" },
          element("kbd", {}, "Space"), " ", element("kbd", {}, "←"), " ", element("kbd", {}, "→"))));
  }

  /** The stages as colored bands above the scrubber. */
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
    if (this.current === this.steps.length - 1) this.go(0);
    this.playButton.textContent = "Pause";
    this.timer = setInterval(() => {
      if (this.current === this.steps.length - 1) this.stop();
      // On a slow connection playback waits for the next image.
      else if (this.frames.has(this.current + 1)) this.go(this.current + 1);
      else this.frames.prefetch(this.current);
    }, 1000 / Number(this.speed.value));
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    if (this.playButton) this.playButton.textContent = "Play";
  }

  handleKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, button, a")) return;
    const offset = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (offset !== undefined) {
      this.stop();
      this.go(this.current + offset);
    } else if (event.key === " ") {
      this.toggle();
    } else {
      return;
    }
    event.preventDefault();
  }
}

/** One player's image and last action. */
class PlayerView {
  constructor(title, name, role, size) {
    this.canvas = element("canvas", { width: 2 * size, height: 2 * size, className: "picture", role: "img" });
    this.canvas.setAttribute("aria-label", `What the ${role} sees`);
    this.caption = element("p", { className: "caption" });
    this.node = element("figure", { className: "side", "data-role": role },
      element("figcaption", {}, element("strong", {}, title), ` ${name ?? ""}`), this.canvas, this.caption);
    this.shown = null;
  }

  /** Shows the image and action of step k, or nothing if k is -1. */
  async show(k, step, frames, acting) {
    this.node.classList.toggle("acting", acting);
    this.caption.textContent = step ? describe(step) : "not yet";
    this.caption.classList.toggle("failed", Boolean(step) && !step.success);
    if (this.shown === k) return;
    this.shown = k;
    const context = this.canvas.getContext("2d");
    const image = k < 0 ? null : await frames.get(k);
    if (this.shown !== k) return;
    context.imageSmoothingQuality = "high";
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    if (image) context.drawImage(image, 0, 0, this.canvas.width, this.canvas.height);
    this.canvas.dataset.frame = k;
  }
}

/** Names of actions, where they differ from the button's label. */
const ACTION_NAMES = {
  OpenAt: "Open", PlaceAt: "Start placing it", RotateHand: "Turn it", ClaimVisible: "Claim to see it",
  ReadyForSeeker: "Ready for the seeker", "": "No action",
};

/** A step in words. */
function describe({ action, success, hit }) {
  const kind = action.split("|")[0];
  const text = kind.startsWith("PS") ? "Choose where to stand" : ACTION_NAMES[kind] ?? ACTIONS[action]?.label ?? kind;
  return `${text}${success ? "" : " · failed"}${hit ? " · hits the target" : ""}`;
}
