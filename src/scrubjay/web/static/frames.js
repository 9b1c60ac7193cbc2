// The images of a replay, prefetched and cached.

const PREFETCH = 12;
const RETRY_MS = 1000;
const MAX_CACHED = 400;

export class Frames {
  constructor(address, total) {
    this.address = address;
    this.total = total;
    this.images = new Map();
    this.loaded = new Set();
  }

  /** A promise of the image after step k, or of null if it cannot be loaded. */
  get(k) {
    if (!this.images.has(k)) {
      const image = new Image();
      image.src = `${this.address}/${k}`;
      const loading = image.decode().then(
        () => {
          this.loaded.add(k);
          return image;
        },
        () => {
          // Allow another try, but not at once: the server may be busy.
          setTimeout(() => this.images.delete(k), RETRY_MS);
          return null;
        });
      this.images.set(k, loading);
      this.evict(k);
    }
    return this.images.get(k);
  }

  has(k) {
    return this.loaded.has(k);
  }

  /** Loads the images after step k. */
  prefetch(k) {
    for (let next = k + 1; next <= Math.min(k + PREFETCH, this.total - 1); next += 1) this.get(next);
  }

  /** Drops the images farthest from step k when there are too many. */
  evict(k) {
    if (this.images.size <= MAX_CACHED) return;
    const farthest = [...this.images.keys()].sort((a, b) => Math.abs(b - k) - Math.abs(a - k));
    for (const number of farthest.slice(0, MAX_CACHED / 4)) {
      this.images.delete(number);
      this.loaded.delete(number);
    }
  }
}
