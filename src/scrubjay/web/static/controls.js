// Buttons and keys. What can be done now comes with every state; buttons show it, and keys do it.

import { element } from "./dom.js";
import { ACTIONS, shownKey } from "./words.js";

const PADS = [
  { name: "feet", title: "Walk", columns: 3,
    actions: ["RotateLeft", "MoveAhead", "RotateRight", "MoveLeft", "Crouch", "Stand", "MoveRight"] },
  { name: "hand", title: "Move it", columns: 3,
    actions: ["MoveHandUp", "MoveHandAhead", "MoveHandDown", "MoveHandLeft", "MoveHandBack", "MoveHandRight"] },
  { name: "turns", title: "Turn it", columns: 3,
    actions: ["RotateHand|+Z", "RotateHand|+X", "RotateHand|-Z", "RotateHand|-Y", "RotateHand|-X", "RotateHand|+Y"] },
  { name: "rest", title: "", columns: 2,
    actions: ["ClaimVisible", "HideHere", "DropObject", "ReadyForSeeker", "Skip", "CloseObjects", "PickUp", "Walk",
              "GiveUp"] },
];
const POINTING = { place: "Put it there", open: "Open it" };
const POINT_KEY = "t";
const RADIO_KEYS = /^( |Arrow.*)$/; // They belong to the choice that has the focus.

export class Controls {
  /** `act(name, repeated)` is called for buttons and keys. */
  constructor(act) {
    this.act = act;
    this.can = new Set();
    this.standing = true;
    this.wanted = "place";
    this.buttons = new Map();
    this.pads = PADS.map((pad) => this.pad(pad));
    this.node = element("div", { className: "controls" }, this.pointing(), ...this.pads.map((pad) => pad.node));
    this.press = (event) => this.key(event);
    document.addEventListener("keydown", this.press);
  }

  close() {
    document.removeEventListener("keydown", this.press);
  }

  /** Shows what can be done; nothing can when `can` is empty. */
  update(can, place, linked) {
    this.can = new Set(can);
    if (place) this.standing = place[3];
    for (const [name, button] of this.buttons) {
      button.hidden = !this.offers(name);
      button.disabled = !linked;
    }
    for (const { node, actions } of this.pads) node.hidden = !actions.some((name) => this.offers(name));
    this.choice.hidden = !(this.can.has("point:open") && this.can.has("point:place"));
  }

  /** What pointing at the picture asks for now: open, place, or null. */
  get pointsTo() {
    const can = ["open", "place"].filter((to) => this.can.has(`point:${to}`));
    return can.length === 2 ? this.wanted : can[0] ?? null;
  }

  // Inside.

  /** One key and one button stand for standing up and crouching: whichever changes something. */
  offers(name) {
    return this.can.has(name) && !(name === "Stand" && this.standing) && !(name === "Crouch" && !this.standing);
  }

  pad({ name, title, columns, actions }) {
    const grid = element("div", { className: `pad pad-${name}` });
    grid.style.setProperty("--columns", columns);
    for (const action of actions) {
      this.buttons.set(action, this.button(action));
      grid.append(this.buttons.get(action));
    }
    const node = element("section", { className: `group group-${name}` }, title && element("h3", {}, title), grid);
    return { node, actions };
  }

  button(name) {
    const { label, sign, keys, tone } = ACTIONS[name];
    const made = element("button", { type: "button", className: tone ?? "", "data-do": name });
    if (sign) made.append(element("span", { className: "sign", "aria-hidden": "true" }, sign));
    made.append(element("span", { className: "label" }, label));
    if (keys.length) made.append(element("kbd", {}, keys.map(shownKey).join(" ")));
    // A mouse leaves the focus where it is, so that the space bar stays a key of the game.
    made.addEventListener("mousedown", (event) => event.preventDefault());
    made.addEventListener("click", () => this.act(name, false));
    return made;
  }

  pointing() {
    const radios = Object.entries(POINTING).map(([to, text]) => {
      const radio = element("input", { type: "radio", name: "pointing", checked: to === this.wanted });
      radio.addEventListener("change", () => (this.wanted = to));
      const label = element("label", {}, radio, element("span", {}, text));
      // A click leaves the keys to the game; who came here by keyboard stays.
      label.addEventListener("click", (event) => event.detail && setTimeout(() => radio.blur()));
      return label;
    });
    this.choice = element("fieldset", { className: "pointing", hidden: true },
      element("legend", {}, "A click on the picture: ", element("kbd", {}, shownKey(POINT_KEY))), ...radios);
    return this.choice;
  }

  key(event) {
    const field = event.target.closest?.("input, select, textarea");
    const typing = field && (field.type !== "radio" || RADIO_KEYS.test(event.key));
    if (event.ctrlKey || event.metaKey || event.altKey || typing) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    // Whoever goes from button to button by keyboard presses them so.
    if ((key === " " || key === "Enter") && event.target.closest?.("button, a, summary")) return;
    if (key === POINT_KEY && !this.choice.hidden) {
      this.choice.querySelector("input:not(:checked)").click();
      return;
    }
    const name = Object.keys(ACTIONS).find((each) => ACTIONS[each].keys.includes(key) && this.offers(each));
    if (!name) return;
    event.preventDefault();
    const button = this.buttons.get(name);
    button.classList.add("pressed");
    setTimeout(() => button.classList.remove("pressed"), 120);
    // Only moves repeat while a key is held down.
    if (!event.repeat || ACTIONS[name].sign) this.act(name, event.repeat);
  }
}
