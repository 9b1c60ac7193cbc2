// Buttons and keys. Every state lists the available actions; only those have buttons and keys.

import { element } from "./dom.js";
import { ACTIONS, keyLabel } from "./words.js";

const PADS = [
  { name: "feet", title: "Walk", columns: 3,
    actions: ["RotateLeft", "MoveAhead", "RotateRight", "MoveLeft", "Crouch", "Stand", "MoveRight"] },
  { name: "hand", title: "Move it", columns: 3,
    actions: ["MoveHandUp", "MoveHandAhead", "MoveHandDown", "MoveHandLeft", "MoveHandBack", "MoveHandRight"] },
  { name: "turns", title: "Turn it", columns: 3,
    actions: ["RotateHand|+Z", "RotateHand|+X", "RotateHand|-Z", "RotateHand|-Y", "RotateHand|-X", "RotateHand|+Y"] },
  { name: "open", title: "", columns: 2, actions: ["NextOpenable", "OpenChosen"] },
  { name: "rest", title: "", columns: 2,
    actions: ["ClaimVisible", "HideHere", "DropObject", "ReadyForSeeker", "Skip", "CloseObjects", "PickUp", "Walk",
              "GiveUp"] },
];
const CLICK_MODES = { place: "Put it there", open: "Open it" };
const CLICK_MODE_KEY = "t";
const STEP_BACK_KEYS = ["s", "ArrowDown"];
const RADIO_KEYS = /^( |Arrow.*)$/; // Left to a focused radio button.

export class Controls {
  /** `act(name, { repeated, backwards })` is called for buttons and keys. */
  constructor(act) {
    this.act = act;
    this.can = new Set();
    this.standing = true;
    this.clickMode = "place";
    this.buttons = new Map();
    this.pads = PADS.map((pad) => this.createPad(pad));
    this.node = element("div", { className: "controls" }, this.createClickModes(), ...this.pads.map((pad) => pad.node));
    this.onKeydown = (event) => this.handleKey(event);
    document.addEventListener("keydown", this.onKeydown);
  }

  close() {
    document.removeEventListener("keydown", this.onKeydown);
  }

  /** Shows the buttons of the available actions, disabled while disconnected. */
  update(can, pose, connected) {
    this.can = new Set(can);
    if (this.can.has("point:open")) this.can.add("NextOpenable").add("OpenChosen");
    if (pose) this.standing = pose[3];
    for (const [name, button] of this.buttons) {
      button.hidden = !this.offers(name);
      button.disabled = !connected;
    }
    for (const { node, actions } of this.pads) node.hidden = !actions.some((name) => this.offers(name));
    this.clickModes.hidden = !(this.can.has("point:open") && this.can.has("point:place"));
  }

  /** What a click on the image does: open, place, or null. */
  get pointsTo() {
    const modes = ["open", "place"].filter((mode) => this.can.has(`point:${mode}`));
    return modes.length === 2 ? this.clickMode : modes[0] ?? null;
  }

  /** Whether an action is available. Standing up and crouching share a key and a place: only one is offered. */
  offers(name) {
    return this.can.has(name) && !(name === "Stand" && this.standing) && !(name === "Crouch" && !this.standing);
  }

  createPad({ name, title, columns, actions }) {
    const grid = element("div", { className: `pad pad-${name}` });
    grid.style.setProperty("--columns", columns);
    for (const action of actions) {
      this.buttons.set(action, this.createButton(action));
      grid.append(this.buttons.get(action));
    }
    const node = element("section", { className: `group group-${name}` }, title && element("h2", {}, title), grid);
    return { node, actions };
  }

  createButton(name) {
    const { label, sign, keys, tone } = ACTIONS[name];
    const button = element("button", { type: "button", className: tone ?? "", "data-do": name });
    if (sign) button.append(element("span", { className: "sign", "aria-hidden": "true" }, sign));
    button.append(element("span", { className: "label" }, label));
    if (keys.length) {
      button.append(element("kbd", { "aria-hidden": "true" }, keys.map(keyLabel).join(" ")));
      button.setAttribute("aria-keyshortcuts", keys.map((key) => (key === " " ? "Space" : key)).join(" "));
    }
    // A mouse click must not move the focus, or the space bar would press this button instead of playing.
    button.addEventListener("mousedown", (event) => event.preventDefault());
    button.addEventListener("click", () => this.act(name));
    return button;
  }

  createClickModes() {
    const radios = Object.entries(CLICK_MODES).map(([mode, text]) => {
      const radio = element("input", { type: "radio", name: "pointing", checked: mode === this.clickMode });
      radio.addEventListener("change", () => (this.clickMode = mode));
      const label = element("label", {}, radio, element("span", {}, text));
      // A mouse click (detail > 0) returns the focus to the game; keyboard users keep it.
      label.addEventListener("click", (event) => event.detail && setTimeout(() => radio.blur()));
      return label;
    });
    this.clickModes = element("fieldset", { className: "segmented", hidden: true },
      element("legend", {}, "Clicking the picture: ", element("kbd", {}, keyLabel(CLICK_MODE_KEY))), ...radios);
    return this.clickModes;
  }

  handleKey(event) {
    const field = event.target.closest?.("input, select, textarea");
    const typing = field && (field.type !== "radio" || RADIO_KEYS.test(event.key));
    if (event.ctrlKey || event.metaKey || event.altKey || typing) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    // Keyboard users press focused buttons and links with these keys.
    if ((key === " " || key === "Enter") && event.target.closest?.("button, a, summary")) return;
    if (key === CLICK_MODE_KEY && !this.clickModes.hidden) {
      this.clickModes.querySelector("input:not(:checked)").click();
      return;
    }
    const name = Object.keys(ACTIONS).find((action) => ACTIONS[action].keys.includes(key) && this.offers(action));
    if (!name && STEP_BACK_KEYS.includes(key) && this.can.has("MoveAhead")) {
      event.preventDefault();
      this.act("StepBack");
    }
    if (!name) return;
    event.preventDefault();
    const button = this.buttons.get(name);
    button.classList.add("pressed");
    setTimeout(() => button.classList.remove("pressed"), 120);
    // Only moves, which have a sign, repeat while a key is held.
    if (!event.repeat || ACTIONS[name].sign) this.act(name, { repeated: event.repeat, backwards: event.shiftKey });
  }
}
