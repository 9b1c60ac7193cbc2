// Creating and finding elements.

/** Creates an element from properties (names with a dash, and role, are attributes) and children. */
export function element(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role") node.setAttribute(key, value);
    else node[key] = value;
  }
  node.append(...children);
  return node;
}

export const byId = (id) => document.getElementById(id);

/** Splits plain text into paragraphs at blank lines. */
export function paragraphs(text) {
  return text.trim().split(/\n\s*\n/).map((part) => element("p", {}, part.replace(/\s*\n\s*/g, " ")));
}

/** Shows an error's message in a node; null hides the node. */
export function showError(node, error) {
  node.textContent = error ? error.message || String(error) : "";
  node.hidden = !error;
  if (error) node.scrollIntoView({ block: "nearest" });
}

/** The <option>s of a <select>, from [value, text] pairs. */
export const options = (pairs) => pairs.map(([value, text]) => element("option", { value }, text));
