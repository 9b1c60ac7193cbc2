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
    this.view = new View((x, y) => this.point(x, y));
    this.map = new SeenMap();
    this.controls = new Controls((name, repeated) => this.connection.act(name, repeated));
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
      element("p", {}, welcome.kind === "seek" ? "Find the " : "Hide the ", element("strong", {}, goal)));
  }

  onState(state, image) {
    this.last = state;
    this.receivedAt = performance.now();
    this.node.dataset.phase = state.phase;
    if (image) this.view.show(image, state.steps);
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
      this.view.coverWith(dialog("This game cannot continue", message, this.reconnectButton("Try again")));
    } else {
      this.view.notify(message);
    }
  }

  onConnection(status, text) {
    this.connectionStatus = status;
    this.connectionText = text;
    this.update();
  }

  point(x, y) {
    const to = this.connectionStatus === "open" && this.controls.pointsTo;
    if (to) this.connection.point(x, y, to);
    return Boolean(to);
  }

  /** Covers the image with a dialog if one is needed, and updates the controls. */
  update() {
    const { last, connectionStatus: status } = this;
    if (ENDINGS[status]) {
      const [title, text] = ENDINGS[status];
      const button = status === "unknown" ? "" : this.reconnectButton("Continue here");
      this.view.coverWith(dialog(title, this.connectionText || text, button));
    } else if (status === "lost") {
      this.view.coverWith(dialog("Connection lost", "Reconnecting. The game will continue where it was."));
    } else if (!last || last.phase === "prepare") {
      this.view.coverWith(this.preparing(last?.progress ?? 0));
    } else if (last.phase === "done") {
      this.result ??= this.finished(last.result, this.welcome);
      this.view.coverWith(this.result);
    } else {
      this.view.coverWith();
    }
    this.controls.update(this.available(), last?.place, status === "open");
    this.view.canvas.classList.toggle("pointable", status === "open" && this.controls.pointsTo !== null);
    this.tick();
  }

  reconnectButton(text) {
    const button = element("button", { type: "button", className: "primary" }, text);
    button.addEventListener("click", () => this.connection.open());
    return button;
  }

  preparing(progress) {
    const { kind, opponent } = this.welcome ?? {};
    const hiding = kind === "seek" && opponent && opponent !== "somewhere";
    return dialog(hiding ? "The object is being hidden" : "Preparing the room", "This takes a moment.",
      element("progress", { max: 1, value: progress }));
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
