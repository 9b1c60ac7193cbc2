// HTTP requests to the server, and values kept in the browser's storage.

/** The server refused a request or did not answer; the message is shown to the user. */
export class ApiError extends Error {
  constructor(message, status = 0, code = "") {
    super(message);
    this.status = status;
    this.code = code;
  }
}

async function request(path, { body, token } = {}) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method: body === undefined ? "GET" : "POST", body, headers });
  } catch {
    throw new ApiError("The server does not respond. Check your connection and try again.");
  }
  if (response.ok) return response;
  let details = {};
  try {
    details = await response.json();
  } catch {
    // Not the server's own answer: perhaps a proxy's error page.
  }
  throw new ApiError(details.message || `The server responded with error ${response.status}.`, response.status,
    details.error);
}

export const getJson = async (path, token) => (await request(path, { token })).json();

/** Sends a value as JSON and returns the JSON of the answer. */
export const postJson = async (path, value, token) => postText(path, JSON.stringify(value), token);

/** Sends text that is JSON already. */
export const postText = async (path, text, token) => (await request(path, { body: text, token })).json();

/** Downloads a file that needs a token. */
export async function download(path, token, name) {
  const blob = await (await request(path, { token })).blob();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Browser storage under the prefix "scrubjay."; falls back to memory where the browser forbids storage. */
class Storage {
  constructor(backend) {
    this.backend = backend;
    this.memory = new Map();
  }

  get(name) {
    try {
      return this.backend().getItem(`scrubjay.${name}`);
    } catch {
      return this.memory.get(name) ?? null;
    }
  }

  set(name, value) {
    try {
      if (value === null) this.backend().removeItem(`scrubjay.${name}`);
      else this.backend().setItem(`scrubjay.${name}`, value);
    } catch {
      this.memory.set(name, value);
    }
  }
}

export const browserStorage = new Storage(() => window.localStorage);
/** For the admin token, which must not outlive its tab. */
export const tabStorage = new Storage(() => window.sessionStorage);

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
