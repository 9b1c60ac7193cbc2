// Making and finding elements.

/** An element with properties (names with a dash, and role, are attributes) and children. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children);
  return made;
}

export const byId = (id) => document.getElementById(id);

/** Puts these in place of whatever is in a node. */
export function fill(node, ...children) {
  node.replaceChildren(...children);
  return node;
}

/** Plain text as paragraphs, which blank lines part. */
export function paragraphs(text) {
  return text.trim().split(/\n\s*\n/).map((part) => element("p", {}, part.replace(/\s*\n\s*/g, " ")));
}

/** Shows an error's sentence where the page says such things; nothing hides it again. */
export function complain(node, error) {
  node.textContent = error ? error.message || String(error) : "";
  node.hidden = !error;
  if (error) node.scrollIntoView({ block: "nearest" });
}

/** Options of a <select>, each [value, text]. */
export const choices = (pairs) => pairs.map(([value, text]) => element("option", { value }, text));
