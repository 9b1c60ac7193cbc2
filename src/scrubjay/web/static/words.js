// What things are called, and which keys do them.

/** Actions: what the button says, its sign, its keys (as KeyboardEvent.key), and the tone of the button. */
export const ACTIONS = {
  MoveAhead: { label: "Forward", sign: "↑", keys: ["w", "ArrowUp"] },
  MoveLeft: { label: "Step left", sign: "←", keys: ["a"] },
  MoveRight: { label: "Step right", sign: "→", keys: ["d"] },
  RotateLeft: { label: "Turn left", sign: "↶", keys: ["q", "ArrowLeft"] },
  RotateRight: { label: "Turn right", sign: "↷", keys: ["e", "ArrowRight"] },
  Stand: { label: "Stand up", sign: "⤒", keys: ["c"] },
  Crouch: { label: "Crouch", sign: "⤓", keys: ["c"] },
  CloseObjects: { label: "Close what is near", keys: ["x"] },
  ClaimVisible: { label: "I see it!", keys: [" "], tone: "primary" },
  HideHere: { label: "Hide it here", keys: ["h"], tone: "primary" },
  MoveHandAhead: { label: "Away", sign: "↑", keys: ["w", "ArrowUp"] },
  MoveHandBack: { label: "Nearer", sign: "↓", keys: ["s", "ArrowDown"] },
  MoveHandLeft: { label: "Left", sign: "←", keys: ["a", "ArrowLeft"] },
  MoveHandRight: { label: "Right", sign: "→", keys: ["d", "ArrowRight"] },
  MoveHandUp: { label: "Up", sign: "⤒", keys: ["r"] },
  MoveHandDown: { label: "Down", sign: "⤓", keys: ["f"] },
  "RotateHand|-X": { label: "Tilt back", sign: "⇓", keys: ["k"] },
  "RotateHand|+X": { label: "Tilt away", sign: "⇑", keys: ["i"] },
  "RotateHand|-Y": { label: "Turn left", sign: "↶", keys: ["j"] },
  "RotateHand|+Y": { label: "Turn right", sign: "↷", keys: ["l"] },
  "RotateHand|-Z": { label: "Tilt right", sign: "⇘", keys: ["o"] },
  "RotateHand|+Z": { label: "Tilt left", sign: "⇙", keys: ["u"] },
  DropObject: { label: "Let go", keys: [" "], tone: "primary" },
  PickUp: { label: "Pick up again", keys: ["p"] },
  Walk: { label: "Hide elsewhere", keys: ["b"] },
  ReadyForSeeker: { label: "Done: it is hidden", keys: ["Enter"], tone: "primary" },
  GiveUp: { label: "Give up", keys: [], tone: "quiet" },
  Skip: { label: "Skip to the end", keys: ["Enter"], tone: "primary" },
};

const SHOWN_KEYS = { " ": "Space", ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→" };
export const shownKey = (key) => SHOWN_KEYS[key] ?? (key.length === 1 ? key.toUpperCase() : key);

/** What a person is told to do in each phase. */
export const HINTS = {
  seek: "Look for it. Click on doors and drawers to open them. When it is in the picture and near, choose “I see it!”.",
  walk: "Walk to where you want to hide it. Click on things to open them. Then choose “Hide it here”.",
  hold: "It is in your hand. Click where it should go, or move it with the keys; then let go.",
  hand: "Move it, then let go. “Pick up again” starts over.",
  placed: "There it lies. Close what is open if you like, then say that you are done, or try again.",
  watch: "Now the seeker looks for it. You see what it sees.",
  done: "",
  prepare: "",
};

export const STAGES = {
  EM: "Exploring",
  PS: "Choosing a place",
  OH: "Hiding",
  OM: "Moving the hand",
  S: "Seeking",
};

const OPPONENTS = {
  somewhere: "nobody: it lies at a random place",
  explorer: "explorer: goes where it has not been",
  random: "random: does anything",
  heuristic: "heuristic: hides where few places see it",
  frontier: "frontier: explores and opens things",
  bfs: "breadth-first: nearest places first",
  oracle: "oracle: knows where it is",
};
export const opponentText = (name) => OPPONENTS[name] ?? name;

/** A room type's heading: living_room becomes Living rooms. */
export const roomTypeText = (type) => `${type[0].toUpperCase()}${type.slice(1).replaceAll("_", " ")}s`;

/** Seconds as minutes and seconds. */
export function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

export const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
