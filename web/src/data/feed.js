// feed.js - one stream per kind, shared by all components that use it, and the collections that it keeps up to date.
//
// A collection lists once, page by page, and then follows; after a gap that the daemon no longer knows it lists again.
// Whoever reads it is called at most once per frame, however many changes there were. Changes come without `status`: of
// kinds that have a status of their own that lives, that is listed anew now and then.

import { get, query } from "./api.js";
import { follow, pause } from "./stream.js";

const PAGE = 2000,
  STATUS_MS = 30000;
const LIVING = new Set(["nodes"]);
const feeds = new Map();
const lines = new Map(); // kind -> "live" or "lost"
const lineListeners = new Set();

function lineState(kind, state) {
  if (state) lines.set(kind, state);
  else lines.delete(kind);
  for (const call of lineListeners) call();
}

/** Returns "live", "lost" or "idle": the state of this page's streams. */
export function connection() {
  if (!lines.size) return "idle";
  return [...lines.values()].every((state) => state === "live") ? "live" : "lost";
}

export function onConnection(call) {
  lineListeners.add(call);
  return () => lineListeners.delete(call);
}

class Feed {
  constructor(kind) {
    this.kind = kind;
    this.path = `/v1/${kind}`;
    this.items = new Map();
    this.ready = false;
    this.version = 0;
    this.error = null;
    this.listeners = new Set();
    this.changeListeners = new Set();
    this.wanted = 0; // number of users of the items, not only of changes
    this.control = null;
    this.frame = 0;
  }

  tell() {
    this.version++;
    if (this.frame) return;
    // A page that is not drawn has no frames, but its timers go on.
    const call = () => {
      this.frame = 0;
      for (const listener of this.listeners) listener();
    };
    this.frame = document.hidden ? setTimeout(call, 100) : requestAnimationFrame(call);
  }

  apply(event) {
    const id = String(event.type === "gone" ? event.id : event.object.id);
    if (event.type === "gone") this.items.delete(id);
    else if (this.wanted) this.items.set(id, { ...event.object, status: this.items.get(id)?.status });
    for (const listener of this.changeListeners) listener(event, id);
    this.tell();
  }

  /** Lists the status of all items, which the stream does not have. For everything else the stream is newer. */
  async look(signal) {
    if (document.hidden || !this.wanted) return;
    let after;
    do {
      const page = await get(query(this.path, { limit: PAGE, after }), { signal });
      for (const { id, status } of page.items) {
        const item = this.items.get(String(id));
        if (item) this.items.set(String(id), { ...item, status });
      }
      after = page.continue;
    } while (after !== undefined);
    this.tell();
  }

  async keepLooking(signal) {
    while (!signal.aborted) {
      await pause(STATUS_MS, signal);
      if (!signal.aborted && this.ready) await this.look(signal).catch(() => {}); // the next one may succeed
    }
  }

  async list(signal) {
    const items = new Map();
    let revision = 0,
      after;
    do {
      const page = await get(query(this.path, { limit: this.wanted ? PAGE : 1, after }), { signal });
      revision ||= page.revision;
      if (!this.wanted) break;
      for (const item of page.items) items.set(String(item.id), item);
      after = page.continue;
    } while (after !== undefined);
    this.items = items;
    return revision;
  }

  async run(signal) {
    while (!signal.aborted) {
      try {
        const revision = await this.list(signal);
        this.ready = true;
        this.error = null;
        this.tell();
        await follow(this.path, revision, {
          signal,
          change: (event) => this.apply(event),
          state: (state) => lineState(this.kind, state),
        });
      } catch (error) {
        if (signal.aborted) return;
        this.error = error;
        this.tell();
        if (error.status === 401 || error.status === 403 || error.status === 404) return;
        lineState(this.kind, "lost");
        await new Promise((done) => setTimeout(done, 2000));
      }
    }
  }

  start() {
    this.stop();
    this.control = new AbortController();
    this.run(this.control.signal);
    if (LIVING.has(this.kind)) this.keepLooking(this.control.signal);
  }

  stop() {
    this.control?.abort();
    this.control = null;
    lineState(this.kind, null);
  }
}

function feedOf(kind) {
  if (!feeds.has(kind)) feeds.set(kind, new Feed(kind));
  return feeds.get(kind);
}

function users(feed) {
  return feed.listeners.size + feed.changeListeners.size;
}

/** Keeps all objects of a kind: calls `call` when `collection(kind)` has changed. Returns a function that ends it. */
export function keep(kind, call) {
  const feed = feedOf(kind),
    first = feed.wanted === 0;
  feed.wanted++;
  feed.listeners.add(call);
  if (first) feed.start();
  return () => {
    feed.listeners.delete(call);
    feed.wanted--;
    if (!users(feed)) feed.stop();
  };
}

/** Calls `call` for every change of a kind from now on, with its event and id. Returns a function that ends it. */
export function listen(kind, call) {
  const feed = feedOf(kind),
    first = !users(feed);
  feed.changeListeners.add(call);
  if (first) feed.start();
  return () => {
    feed.changeListeners.delete(call);
    if (!users(feed)) feed.stop();
  };
}

export const collection = feedOf;

/** Drops everything before another user signs in. */
export function forget() {
  for (const feed of feeds.values()) feed.stop();
  feeds.clear();
}
