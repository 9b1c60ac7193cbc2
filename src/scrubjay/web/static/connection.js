// The WebSocket of one trial. Reconnects by itself; the game continues at the same step.

const PING_MS = 3000;
const MAX_UNANSWERED = 5; // Pings after which a silent connection counts as lost.
const MAX_QUEUED = 2; // Key presses queued while an action is in progress.
const RETRY_MS = [300, 700, 1500, 3000, 6000];
const FOCUS_EVENTS = ["blur", "focus", "visibilitychange"]; // The last one bubbles up from the document.
const FINAL_CODES = { 4000: "refused", 4001: "taken", 4004: "unknown" };

/**
 * Calls its listener's methods: onWelcome(message), onState(message, image or null), onError(message), onPong(message),
 * and onConnection(status, text), where status is connecting, open, lost, taken, unknown or refused.
 */
export class Connection {
  constructor(trial, listener) {
    this.trial = trial;
    this.listener = listener;
    this.lastId = 0;
    this.retries = 0;
    this.ended = false;
    this.lastText = "";
    this.study = false; // Whether the trial belongs to a study, which wants the client's times and losses of focus.
    this.focused = true; // As last reported.
    this.onFocus = () => this.reportFocus();
    for (const name of FOCUS_EVENTS) window.addEventListener(name, this.onFocus);
    this.onOnline = () => this.retries > 0 && this.open();
    window.addEventListener("online", this.onOnline);
    this.open();
  }

  /** Connects or reconnects. */
  open() {
    this.drop();
    this.ended = false;
    this.listener.onConnection(this.retries ? "lost" : "connecting", "");
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/socket`);
    socket.binaryType = "blob";
    socket.onopen = () => socket.send(JSON.stringify({ type: "hello", trial: this.trial }));
    socket.onmessage = (event) => this.receive(event.data);
    socket.onclose = (event) => this.onClose(event.code);
    this.socket = socket;
    this.unanswered = 0;
    this.heartbeat = setInterval(() => this.ping(), PING_MS);
  }

  /** Disconnects for good. */
  close() {
    this.ended = true;
    window.removeEventListener("online", this.onOnline);
    for (const name of FOCUS_EVENTS) window.removeEventListener(name, this.onFocus);
    this.drop();
  }

  /** Takes an action; a held key's repeats are dropped while an answer is pending. */
  act(name, repeated = false) {
    this.request({ type: "act", do: name }, repeated);
  }

  /** Points at the image, in fractions of its sides. */
  point(x, y, to) {
    this.request({ type: "point", x, y, to }, false);
  }

  /** Tells a study's server when the window loses the focus and gets it back. */
  reportFocus() {
    const focused = document.hasFocus() && !document.hidden;
    if (!this.study || !this.ready || focused === this.focused || this.socket?.readyState !== WebSocket.OPEN) return;
    this.focused = focused;
    this.send({ type: "focus", focused, at: Date.now() });
  }

  ping() {
    if (this.unanswered >= MAX_UNANSWERED) {
      this.onClose(1006);
    } else if (this.socket.readyState === WebSocket.OPEN) {
      this.unanswered += 1;
      this.send({ type: "ping" });
    }
  }

  drop() {
    clearInterval(this.heartbeat);
    clearTimeout(this.retryTimer);
    this.pendingId = null;
    this.queue = [];
    this.stateWithoutImage = null;
    if (!this.socket) return;
    this.socket.onmessage = this.socket.onclose = null;
    this.socket.close();
    this.socket = null;
  }

  onClose(code) {
    this.drop();
    if (this.ended) return;
    if (FINAL_CODES[code]) {
      this.ended = true;
      this.listener.onConnection(FINAL_CODES[code], this.lastText);
      return;
    }
    const delay = RETRY_MS[Math.min(this.retries, RETRY_MS.length - 1)];
    this.retries += 1;
    this.listener.onConnection("lost", "");
    this.retryTimer = setTimeout(() => this.open(), delay * (0.8 + 0.4 * Math.random()));
  }

  request(message, repeated) {
    if (this.socket?.readyState !== WebSocket.OPEN) return;
    if (this.study) message.at = Date.now();
    if (this.pendingId === null) this.pendingId = this.send(message);
    else if (!repeated && this.queue.length < MAX_QUEUED) this.queue.push(message);
  }

  send(message) {
    this.lastId += 1;
    this.socket.send(JSON.stringify({ ...message, id: this.lastId }));
    return this.lastId;
  }

  receive(data) {
    this.unanswered = 0;
    if (data instanceof Blob) {
      // An image belongs to the state sent before it.
      const state = this.stateWithoutImage;
      this.stateWithoutImage = null;
      if (state) this.deliver(state, data);
      return;
    }
    const message = JSON.parse(data);
    if (message.type === "welcome") {
      this.retries = 0;
      this.study = message.study;
      this.listener.onConnection("open", "");
      this.listener.onWelcome(message);
    } else if (message.type === "state") {
      if (message.phase === "prepare") this.deliver(message, null);
      else this.stateWithoutImage = message;
    } else if (message.type === "error") {
      this.lastText = message.message;
      // Pings are refused while a room is being prepared; that is not shown.
      if (message.reply === null || message.reply === this.pendingId) this.listener.onError(message);
      this.settle(message.reply);
    } else if (message.type === "pong") {
      this.listener.onPong(message);
    } else if (message.type === "taken") {
      this.lastText = message.message;
    }
  }

  deliver(state, image) {
    this.ready = state.phase !== "prepare" && state.phase !== "done";
    this.listener.onState(state, image);
    this.settle(state.reply);
    this.reportFocus();
  }

  /** Sends the next queued message when the pending one is answered. */
  settle(reply) {
    if (reply === null || reply !== this.pendingId) return;
    this.pendingId = null;
    const next = this.queue.shift();
    if (next) this.pendingId = this.send(next);
  }
}
