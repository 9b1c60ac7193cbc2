// The socket to one trial. Lost connections come back by themselves, and the game goes on where it was.

const PING_MS = 3000;
const MOST_UNANSWERED = 5; // Pings after which a silent connection counts as lost.
const MOST_WAITING = 2; // Presses that wait while one is under way.
const PAUSES_MS = [300, 700, 1500, 3000, 6000];
const ENDS = { 4000: "refused", 4001: "taken", 4004: "unknown" };

/**
 * Tells its listener: welcome(message), state(message, picture or null), refused(message), pong(message), and
 * linked(how, sentence), where how is connecting, open, lost, taken, unknown or refused.
 */
export class Connection {
  constructor(trial, listener) {
    this.trial = trial;
    this.listener = listener;
    this.number = 0;
    this.tries = 0;
    this.ended = false;
    this.said = "";
    this.online = () => this.tries > 0 && this.open();
    window.addEventListener("online", this.online);
    this.open();
  }

  /** Connects, or connects anew. */
  open() {
    this.drop();
    this.ended = false;
    this.listener.linked(this.tries ? "lost" : "connecting", "");
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/socket`);
    socket.binaryType = "blob";
    socket.onopen = () => socket.send(JSON.stringify({ type: "hello", trial: this.trial }));
    socket.onmessage = (event) => this.hear(event.data);
    socket.onclose = (event) => this.closed(event.code);
    this.socket = socket;
    this.unanswered = 0;
    this.beat = setInterval(() => this.ping(), PING_MS);
  }

  /** Leaves for good. */
  close() {
    this.ended = true;
    window.removeEventListener("online", this.online);
    this.drop();
  }

  /** Does something; a key's repetition is left out while an answer is awaited. */
  act(name, repeated = false) {
    this.request({ type: "act", do: name }, repeated);
  }

  /** Points at the picture, in shares of its sides. */
  point(x, y, to) {
    this.request({ type: "point", x, y, to }, false);
  }

  ping() {
    if (this.unanswered >= MOST_UNANSWERED) {
      this.closed(1006);
    } else if (this.socket.readyState === WebSocket.OPEN) {
      this.unanswered += 1;
      this.send({ type: "ping" });
    }
  }

  // Inside.

  drop() {
    clearInterval(this.beat);
    clearTimeout(this.again);
    this.asked = null;
    this.waiting = [];
    this.half = null;
    if (!this.socket) return;
    this.socket.onmessage = this.socket.onclose = null;
    this.socket.close();
    this.socket = null;
  }

  closed(code) {
    this.drop();
    if (this.ended) return;
    if (ENDS[code]) {
      this.ended = true;
      this.listener.linked(ENDS[code], this.said);
      return;
    }
    const wait = PAUSES_MS[Math.min(this.tries, PAUSES_MS.length - 1)];
    this.tries += 1;
    this.listener.linked("lost", "");
    this.again = setTimeout(() => this.open(), wait * (0.8 + 0.4 * Math.random()));
  }

  request(message, repeated) {
    if (this.socket?.readyState !== WebSocket.OPEN) return;
    if (this.asked === null) this.asked = this.send(message);
    else if (!repeated && this.waiting.length < MOST_WAITING) this.waiting.push(message);
  }

  send(message) {
    this.number += 1;
    this.socket.send(JSON.stringify({ ...message, id: this.number }));
    return this.number;
  }

  hear(data) {
    this.unanswered = 0;
    if (data instanceof Blob) {
      // A picture belongs to the state before it.
      const state = this.half;
      this.half = null;
      if (state) this.tell(state, data);
      return;
    }
    const message = JSON.parse(data);
    if (message.type === "welcome") {
      this.tries = 0;
      this.listener.linked("open", "");
      this.listener.welcome(message);
    } else if (message.type === "state") {
      if (message.phase === "prepare") this.tell(message, null);
      else this.half = message;
    } else if (message.type === "error") {
      this.said = message.message;
      // Pings are refused while a room is prepared, which nobody needs to hear.
      if (message.reply === null || message.reply === this.asked) this.listener.refused(message);
      this.answered(message.reply);
    } else if (message.type === "pong") {
      this.listener.pong(message);
    } else if (message.type === "taken") {
      this.said = message.message;
    }
  }

  tell(state, picture) {
    this.listener.state(state, picture);
    this.answered(state.reply);
  }

  /** What waited comes next once the answer is there. */
  answered(reply) {
    if (reply === null || reply !== this.asked) return;
    this.asked = null;
    const next = this.waiting.shift();
    if (next) this.asked = this.send(next);
  }
}
