// The pictures of a record, fetched a little ahead and kept.

const AHEAD = 12; // Pictures fetched before they are needed.
const AGAIN_MS = 1000;
const MOST_KEPT = 400;

export class Frames {
  constructor(address, total) {
    this.address = address;
    this.total = total;
    this.images = new Map();
    this.ready = new Set();
  }

  /** A picture, when it is there; null if it cannot be had. */
  get(k) {
    if (!this.images.has(k)) {
      const image = new Image();
      image.src = `${this.address}/${k}`;
      const fetched = image.decode().then(
        () => {
          this.ready.add(k);
          return image;
        },
        () => {
          // Asked for again, but not at once: the server may be busy.
          setTimeout(() => this.images.delete(k), AGAIN_MS);
          return null;
        });
      this.images.set(k, fetched);
      this.forget(k);
    }
    return this.images.get(k);
  }

  has(k) {
    return this.ready.has(k);
  }

  /** Fetches what comes after step k. */
  ahead(k) {
    for (let next = k + 1; next <= Math.min(k + AHEAD, this.total - 1); next += 1) this.get(next);
  }

  /** Lets go of those that are furthest from step k. */
  forget(k) {
    if (this.images.size <= MOST_KEPT) return;
    const far = [...this.images.keys()].sort((a, b) => Math.abs(b - k) - Math.abs(a - k));
    for (const each of far.slice(0, MOST_KEPT / 4)) {
      this.images.delete(each);
      this.ready.delete(each);
    }
  }
}
