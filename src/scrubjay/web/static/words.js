// Labels, hints and keys.

/** Actions: the button's label, sign and style (tone), and the keys as KeyboardEvent.key. */
export const ACTIONS = {
  MoveAhead: { label: "Forward", sign: "↑", keys: ["w", "ArrowUp"] },
  MoveLeft: { label: "Step left", sign: "←", keys: ["a"] },
  MoveRight: { label: "Step right", sign: "→", keys: ["d"] },
  RotateLeft: { label: "Turn left", sign: "↶", keys: ["q", "ArrowLeft"] },
  RotateRight: { label: "Turn right", sign: "↷", keys: ["e", "ArrowRight"] },
  Stand: { label: "Stand up", sign: "⤒", keys: ["c"] },
  Crouch: { label: "Crouch", sign: "⤓", keys: ["c"] },
  NextOpenable: { label: "Next to open", keys: ["n"] },
  OpenChosen: { label: "Open it", keys: ["m"] },
  CloseObjects: { label: "Close nearby", keys: ["x"] },
  ClaimVisible: { label: "I see it!", keys: [" "], tone: "primary" },
  HideHere: { label: "Hide it here", keys: ["h"], tone: "primary" },
  MoveHandAhead: { label: "Away", sign: "↑", keys: ["w", "ArrowUp"] },
  MoveHandBack: { label: "Closer", sign: "↓", keys: ["s", "ArrowDown"] },
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
  DropObject: { label: "Drop", keys: [" "], tone: "primary" },
  PickUp: { label: "Pick up again", keys: ["p"] },
  Walk: { label: "Hide elsewhere", keys: ["b"] },
  ReadyForSeeker: { label: "Done hiding", keys: ["Enter"], tone: "primary" },
  GiveUp: { label: "Give up", keys: [], tone: "quiet" },
  Skip: { label: "Skip to the end", keys: ["Enter"], tone: "primary" },
};

const KEY_LABELS = { " ": "Space", ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→" };
export const keyLabel = (key) => KEY_LABELS[key] ?? (key.length === 1 ? key.toUpperCase() : key);

/** What the player should do in each phase. */
export const HINTS = {
  seek: "Look for the object. Click doors and drawers to open them. When you see it close by, choose “I see it!”.",
  walk: "Walk to where you want to hide it. Click things to open them. Then choose “Hide it here”.",
  hold: "You hold the object. Click where it should go, or move it with the keys. Then drop it.",
  hand: "Move it, then drop it. “Pick up again” starts over.",
  placed: "The object is placed. Close what is open if you like. Then choose “Done hiding”, or try again.",
  watch: "The seeker is looking for it. You see what the seeker sees.",
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

const OPPONENT_LABELS = {
  somewhere: "None: a random hiding place",
  explorer: "Explorer: walks where it has not been",
  "scrubjay-paper": "Scrubjay: the trained agent",
  random: "Random: takes random actions",
  possible: "Possible: random actions that can succeed",
  heuristic: "Heuristic: hides where it is hard to see",
  frontier: "Frontier: explores and opens things",
  bfs: "Breadth-first: nearest places first",
  oracle: "Oracle: knows where it is",
};
export const opponentLabel = (name) => OPPONENT_LABELS[name] ?? name;

/** Heading of a room type: living_room becomes Living rooms. */
export const roomTypeLabel = (type) => `${type.charAt(0).toUpperCase()}${type.slice(1).replaceAll("_", " ")}s`;

/** Seconds as m:ss. */
export function formatTime(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

export const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
