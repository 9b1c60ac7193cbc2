// One game as the person plays it: picture, goal, map, counters and controls, tied to a connection.

import { Connection } from "./connection.js";
import { Controls } from "./controls.js";
import { element } from "./dom.js";
import { SeenMap } from "./map.js";
import { View, message } from "./view.js";
import { HINTS, clock } from "./words.js";

/** How a connection can end, in words. */
const ENDS = {
  taken: ["Open in another window", "This game goes on in another tab or window."],
  unknown: ["This game is gone", "The server does not know it any more."],
  refused: ["Something went wrong", "The server did not understand this page. Reloading may help."],
};

export class Game {
  /** Plays a trial in `root`; `finished(result, about)` makes what is shown over the last picture. */
  constructor(root, trial, finished) {
    this.finished = finished;
    this.about = this.last = this.result = null;
    this.heard = 0;
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
    this.ticking = setInterval(() => this.tick(), 500);
    this.connection = new Connection(trial, this);
  }

  close() {
    clearInterval(this.ticking);
    this.controls.close();
    this.connection.close();
    this.node.remove();
  }

  // What the connection tells.

  welcome(about) {
    this.about = about;
    this.map.bounds = about.bounds;
    this.node.dataset.kind = about.kind;
    const goal = about.goal.toLowerCase();
    this.goal.replaceChildren(
      element("img", { src: `/static/${goal}.svg`, alt: "", width: 44, height: 44 }),
      element("p", {}, about.kind === "seek" ? "Find the " : "Hide the ", element("strong", {}, goal)));
  }

  state(state, picture) {
    this.last = state;
    this.heard = performance.now();
    this.node.dataset.phase = state.phase;
    if (picture) this.view.show(picture, state.steps);
    this.map.update(state);
    this.steps.textContent = state.steps;
    this.hint.textContent = HINTS[state.phase] ?? "";
    const failed = state.reply !== null && state.success === false;
    this.view.say(state.notice || (failed ? "That did not work." : ""));
    this.show();
  }

  pong({ give_up_in, seconds }) {
    if (!this.last) return;
    Object.assign(this.last, { give_up_in, seconds });
    this.heard = performance.now();
    this.show();
  }

  refused({ code, message: text, reply }) {
    if (code === "failed" && reply === null) {
      this.view.coverWith(message("This game cannot go on", text, this.again("Try again")));
    } else {
      this.view.say(text);
    }
  }

  linked(how, text) {
    this.link = how;
    this.said = text;
    this.show();
  }

  // Inside.

  point(x, y) {
    const to = this.link === "open" && this.controls.pointsTo;
    if (to) this.connection.point(x, y, to);
    return Boolean(to);
  }

  /** Covers the picture with what matters most now, and offers what can be done. */
  show() {
    const { last, link } = this;
    if (ENDS[link]) {
      const [title, usual] = ENDS[link];
      this.view.coverWith(message(title, this.said || usual, link === "unknown" ? "" : this.again("Play on here")));
    } else if (link === "lost") {
      this.view.coverWith(message("Connection lost", "Trying again. The game goes on where it was."));
    } else if (!last || last.phase === "prepare") {
      this.view.coverWith(this.preparing(last?.progress ?? 0));
    } else if (last.phase === "done") {
      this.result ??= this.finished(last.result, this.about);
      this.view.coverWith(this.result);
    } else {
      this.view.coverWith();
    }
    this.controls.update(this.offered(), last?.place, link === "open");
    this.view.canvas.classList.toggle("pointable", link === "open" && this.controls.pointsTo !== null);
    this.tick();
  }

  again(text) {
    const button = element("button", { type: "button", className: "primary" }, text);
    button.addEventListener("click", () => this.connection.open());
    return button;
  }

  preparing(progress) {
    const { kind, opponent } = this.about ?? {};
    const hides = kind === "seek" && opponent && opponent !== "somewhere";
    return message(hides ? "It is being hidden" : "The room is made ready", "This takes a moment.",
      element("progress", { max: 1, value: progress }));
  }

  /** The state's own list, and giving up as soon as the server says that its time has come. */
  offered() {
    const { last } = this;
    const may = last?.phase === "seek" && last.give_up_in === 0 && !last.can.includes("GiveUp");
    return may ? [...last.can, "GiveUp"] : last?.can ?? [];
  }

  /** Clocks run on between what the server says. */
  tick() {
    const { last } = this;
    if (!last || last.phase === "prepare" || last.phase === "done") {
      this.patience.hidden = true;
      return;
    }
    const since = (performance.now() - this.heard) / 1000;
    this.time.textContent = clock(last.seconds + since);
    this.patience.hidden = !(last.phase === "seek" && last.give_up_in > 0);
    this.patience.textContent = `You may give up in ${clock(Math.ceil(Math.max(0, (last.give_up_in ?? 0) - since)))}.`;
  }
}
