// Asking the server over HTTP, and what is kept in this browser.

/** The server said no, or did not answer; the message is for the person. */
export class Refusal extends Error {
  constructor(message, status = 0, code = "") {
    super(message);
    this.status = status;
    this.code = code;
  }
}

async function answer(path, { body, token, method } = {}) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method: method ?? (body === undefined ? "GET" : "POST"), body, headers });
  } catch {
    throw new Refusal("The server does not answer. Check the connection and try again.");
  }
  if (response.ok) return response;
  let said = {};
  try {
    said = await response.json();
  } catch {
    // Not ours: a proxy's page, perhaps.
  }
  throw new Refusal(said.message || `The server answered with error ${response.status}.`, response.status, said.error);
}

/** JSON from the server. */
export const ask = async (path, token) => (await answer(path, { token })).json();

/** Sends JSON, and returns the server's. */
export const tell = async (path, value, token) =>
  (await answer(path, { body: JSON.stringify(value), token })).json();

/** Sends text as it is. */
export const tellText = async (path, text) => (await answer(path, { body: text })).json();

/** Downloads a file that needs a token. */
export async function download(path, token, name) {
  const blob = await (await answer(path, { token })).blob();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Values by name that outlive the page, as far as the browser lets us. */
class Kept {
  constructor(storage) {
    this.storage = storage;
    this.here = new Map();
  }

  get(name) {
    try {
      return this.storage().getItem(`scrubjay.${name}`);
    } catch {
      return this.here.get(name) ?? null;
    }
  }

  set(name, value) {
    try {
      if (value === null) this.storage().removeItem(`scrubjay.${name}`);
      else this.storage().setItem(`scrubjay.${name}`, value);
    } catch {
      // Some browsers forbid storage: then it lasts as long as the page.
      this.here.set(name, value);
    }
  }
}

export const kept = new Kept(() => window.localStorage);
/** The admin's token does not outlive its tab. */
export const keptInTab = new Kept(() => window.sessionStorage);

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
