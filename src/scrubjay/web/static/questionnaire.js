// A questionnaire: a form with a field for each question.

import { element } from "./dom.js";

const MAX_LENGTH = 2000;

/**
 * A form for questions of the study; submit(answers) gets the answers by the questions' names, null where none.
 * What was filled in survives a reload: `draft` has get() and set(text) to keep it.
 */
export function questionnaire(questions, submit, draft) {
  const button = element("button", { type: "submit", className: "primary" }, "Continue");
  const form = element("form", { className: "questions", autocomplete: "off" }, ...questions.map(field), button);
  fill(form, questions, JSON.parse(draft.get() ?? "{}"));
  form.addEventListener("input", () => draft.set(JSON.stringify(answers(form, questions))));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    await submit(answers(form, questions));
    button.disabled = false;
  });
  return form;
}

const answers = (form, questions) =>
  Object.fromEntries(questions.map((question) => [question.name, answerTo(form, question)]));

function fill(form, questions, values) {
  for (const { name } of questions) if (values[name]) form.elements[`question-${name}`].value = values[name];
}

function answerTo(form, { name, kind }) {
  const value = form.elements[`question-${name}`].value.trim();
  if (!value) return null;
  return kind === "scale" ? Number(value) : value;
}

function field(question) {
  if (question.kind === "text") return textField(question);
  const choices = question.kind === "choice" ? question.choices.map((choice) => [choice, choice]) : points(question);
  const radios = choices.map(([value, text, label]) => radio(question, value, text, label));
  const ends = question.low || question.high
    ? [element("div", { className: "ends", "aria-hidden": "true" },
        element("span", {}, question.low), element("span", {}, question.high))] : [];
  return element("fieldset", { className: question.kind }, element("legend", {}, asked(question)), ...ends,
    element("div", { className: "options" }, ...radios), question.required ? "" : radio(question, "", "No answer"));
}

function textField(question) {
  const input = element(question.long ? "textarea" : "input", {
    name: `question-${question.name}`, maxLength: MAX_LENGTH, required: question.required,
    ...(question.long ? { rows: 4 } : { type: "text" }),
  });
  return element("label", { className: "text-question" }, element("span", {}, asked(question)), input);
}

/** Value, text and spoken label of a scale's points. */
function points({ points: count, low, high }) {
  const meaning = (point) => (point === 1 ? low : point === count ? high : "");
  return Array.from({ length: count }, (_, k) => k + 1).map((point) =>
    [String(point), String(point), meaning(point) ? `${point}: ${meaning(point)}` : `${point} of ${count}`]);
}

function radio({ name, required }, value, text, label = text) {
  const input = element("input", { type: "radio", name: `question-${name}`, value, required, "aria-label": label });
  return element("label", {}, input, element("span", {}, text));
}

const asked = ({ ask, required }) => (required ? ask : `${ask} (optional)`);
