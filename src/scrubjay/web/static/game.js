// One game as the player sees it: image, goal, map, counters and controls, fed by a connection.

import { Connection } from "./connection.js";
import { Controls } from "./controls.js";
import { element } from "./dom.js";
import { SeenMap } from "./map.js";
import { View, dialog } from "./view.js";
import { HINTS, formatTime } from "./words.js";

/** Title and default text when the connection has ended. */
const ENDINGS = {
  taken: ["Open in another window", "This game continues in another tab or window."],
  unknown: ["This game is gone", "The server no longer has it."],
  refused: ["Something went wrong", "The server did not understand this page. Try reloading it."],
};

export class Game {
  /** Plays a trial inside `root`; finished(result, welcome) creates the dialog shown at the end. */
  constructor(root, trial, finished) {
    this.finished = finished;
    this.welcome = this.last = this.result = null;
    this.receivedAt = 0;
    this.view = new View((x, y) => this.point(x, y), () => this.pointsTo() === "open");
    this.map = new SeenMap();
    this.controls = new Controls((name, event) => this.perform(name, event));
    this.steps = element("dd", { id: "steps" }, "0");
    this.time = element("dd", {}, "0:00");
    this.patience = element("p", { className: "patience", hidden: true });
    this.goal = element("div", { className: "goal" });
    this.hint = element("p", { className: "hint" });
    const facts = element("dl", { className: "facts" },
      element("div", {}, element("dt", {}, "Steps"), this.steps),
      element("div", {}, element("dt", {}, "Time"), this.time));
    const summary = element("div", { className: "summary" }, element("div", {}, this.goal, facts), this.map.node);
    this.node = element("div", { className: "game" }, this.view.node,
      element("aside", {}, summary, this.hint, this.controls.node, this.patience));
    root.replaceChildren(this.node);
    this.ticker = setInterval(() => this.tick(), 500);
    this.connection = new Connection(trial, this);
  }

  close() {
    clearInterval(this.ticker);
    this.controls.close();
    this.connection.close();
    this.node.remove();
  }

  onWelcome(welcome) {
    this.welcome = welcome;
    this.map.bounds = welcome.bounds;
    this.node.dataset.kind = welcome.kind;
    const goal = welcome.goal.toLowerCase();
    this.goal.replaceChildren(
      element("img", { src: `/static/${goal}.svg`, alt: "", width: 44, height: 44 }),
      element("h1", {}, welcome.kind === "seek" ? "Find the " : "Hide the ", element("strong", {}, goal)));
  }

  onState(state, image) {
    this.last = state;
    this.receivedAt = performance.now();
    this.node.dataset.phase = state.phase;
    if (image) this.view.show(image, state.steps);
    this.view.updateOpenables(state.openables);
    this.map.update(state);
    this.steps.textContent = state.steps;
    this.hint.textContent = HINTS[state.phase] ?? "";
    const failed = state.reply !== null && state.success === false;
    this.view.notify(state.notice || (failed ? "That did not work." : ""));
    this.update();
  }

  onPong({ give_up_in, seconds }) {
    if (!this.last) return;
    Object.assign(this.last, { give_up_in, seconds });
    this.receivedAt = performance.now();
    this.update();
  }

  onError({ code, message, reply }) {
    if (code === "failed" && reply === null) {
      this.view.coverWith("failed", () => dialog("This game cannot continue", message, this.reconnectButton("Try again")));
    } else {
      this.view.notify(message);
    }
  }

  onConnection(status, text) {
    this.connectionStatus = status;
    this.connectionText = text;
    this.update();
  }

  /** What a click does: open, place, or null. */
  pointsTo() {
    return this.connectionStatus === "open" ? this.controls.pointsTo : null;
  }

  point(x, y) {
    const to = this.pointsTo();
    if (to) this.connection.point(x, y, to);
    return Boolean(to);
  }

  /** Takes the action of a button or a key. The server knows nothing of choosing what to open, and of stepping back. */
  perform(name, { repeated = false, backwards = false } = {}) {
    if (name === "StepBack") this.view.notify("Nobody can step back. Turn around instead.");
    else if (name === "NextOpenable") this.chooseOpenable(backwards);
    else if (name === "OpenChosen") this.openChosen();
    else this.connection.act(name, repeated);
  }

  chooseOpenable(backwards) {
    const words = this.view.openables.next(backwards);
    this.view.notify(words ?? "Nothing in view can be opened from here.");
  }

  openChosen() {
    const { chosen } = this.view.openables;
    if (chosen) this.connection.point(chosen.x, chosen.y, "open");
    else this.chooseOpenable(false);
  }

  /** Covers the image with a dialog if one is needed, and updates the controls. */
  update() {
    const { last, connectionStatus: status, view } = this;
    if (ENDINGS[status]) {
      const [title, text] = ENDINGS[status];
      const button = status === "unknown" ? "" : this.reconnectButton("Continue here");
      view.coverWith(status, () => dialog(title, this.connectionText || text, button));
    } else if (status === "lost") {
      view.coverWith("lost", () => dialog("Connection lost", "Reconnecting. The game will continue where it was."));
    } else if (!last || last.phase === "prepare") {
      view.coverWith(`prepare ${this.welcome?.kind}`, () => this.preparing());
      this.progress.value = last?.progress ?? 0;
    } else if (last.phase === "done") {
      view.coverWith("done", () => (this.result ??= this.finished(last.result, this.welcome)));
    } else {
      view.coverWith(null);
    }
    this.controls.update(this.available(), last?.place, status === "open");
    view.canvas.classList.toggle("pointable", this.pointsTo() !== null);
    this.tick();
  }

  reconnectButton(text) {
    const button = element("button", { type: "button", className: "primary" }, text);
    button.addEventListener("click", () => this.connection.open());
    return button;
  }

  preparing() {
    const { kind, opponent } = this.welcome ?? {};
    const hiding = kind === "seek" && opponent && opponent !== "somewhere";
    this.progress = element("progress", { max: 1, value: 0, "aria-label": "Progress" });
    return dialog(hiding ? "The object is being hidden" : "Preparing the room",
      hiding ? "The hider explores the room first: up to a minute." : "This takes a moment.", this.progress);
  }

  /** The state's actions, plus giving up as soon as a pong has allowed it. */
  available() {
    const { last } = this;
    const canGiveUp = last?.phase === "seek" && last.give_up_in === 0 && !last.can.includes("GiveUp");
    return canGiveUp ? [...last.can, "GiveUp"] : last?.can ?? [];
  }

  /** Advances the clocks between messages. */
  tick() {
    const { last } = this;
    if (!last || last.phase === "prepare" || last.phase === "done") {
      this.patience.hidden = true;
      return;
    }
    const elapsed = (performance.now() - this.receivedAt) / 1000;
    const wait = Math.ceil(Math.max(0, (last.give_up_in ?? 0) - elapsed));
    this.time.textContent = formatTime(last.seconds + elapsed);
    this.patience.hidden = !(last.phase === "seek" && last.give_up_in > 0);
    this.patience.textContent = `You can give up in ${formatTime(wait)}.`;
  }
}
