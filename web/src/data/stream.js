// stream.js - lines of an endless answer, resumed after a break.

import { heard, open, ApiError } from "./api.js";

const PAUSE_MS = [200, 500, 1000, 2000, 5000, 10000];
// A browser has six connections to one host over all its tabs: hidden tabs close theirs.
const HIDDEN_MS = 20000;
// The daemon sends at least an empty line every 15 s: a stream that is silent for so long is broken.
const SILENT_MS = 45000;

export const pause = (ms, signal) =>
  new Promise((done) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      done();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end, { once: true });
  });

function whenShown(signal) {
  if (!document.hidden) return Promise.resolve();
  return new Promise((done) => {
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      done();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look, { once: true });
  });
}

/** Returns a signal that aborts when the page has been hidden for a while. */
function hiddenSignal() {
  const control = new AbortController();
  let timer = 0;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(() => control.abort(), HIDDEN_MS);
  };
  document.addEventListener("visibilitychange", look);
  look();
  return { signal: control.signal,
    done: () => { clearTimeout(timer); document.removeEventListener("visibilitychange", look); } };
}

/**
 * Runs `read` with a signal when the page is looked at; the signal is aborted also when it has been hidden for a while.
 */
export async function whileShown(signal, read) {
  await whenShown(signal);
  if (signal.aborted) return;
  const hidden = hiddenSignal();
  try {
    await read(AbortSignal.any([signal, hidden.signal]));
  } finally {
    hidden.done();
  }
}

/** Returns a signal that aborts when `heard` has not been called for a while. */
function silentSignal() {
  const control = new AbortController();
  let timer = 0;
  const done = () => clearTimeout(timer);
  const heard = () => {
    done();
    timer = setTimeout(() => control.abort(), SILENT_MS);
  };
  heard();
  return { signal: control.signal, heard, done };
}

/** Calls `take` with each piece of text of the body. */
export async function readText(answer, take) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await heard(reader.read());
    if (done) return;
    take(value);
  }
}

/** Calls `take` with each line of the body, parsed as JSON; calls `alive` for every input, even an empty line. */
export async function readLines(answer, take, alive = () => {}) {
  let rest = "";
  await readText(answer, (text) => {
    alive();
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.trim()) take(JSON.parse(line));
  });
}

/** Follows the changes of a collection until it is aborted. `from` is a revision; `change` is called with each event,
 * in order, without gaps or repeats; `state` with "live" or "lost" as the connection changes. Ends if the revision was
 * compacted: then the caller lists again. */
export async function follow(path, from, { change, state, signal }) {
  let revision = from,
    failures = 0,
    over = false;
  const take = (event) => {
    if (event.type === "end") {
      over = event.code === "compacted";
      return;
    }
    revision = event.revision;
    change(event);
  };
  const read = async (shown) => {
    const silent = silentSignal();
    try {
      const answer = await open("GET", `${path}?watch=${revision}`,
        { signal: AbortSignal.any([shown, silent.signal]) });
      failures = 0;
      state("live");
      await readLines(answer, take, silent.heard);
    } finally {
      silent.done();
    }
  };
  while (!signal.aborted && !over) {
    try {
      await whileShown(signal, read);
    } catch (error) {
      if (error instanceof ApiError && [401, 403, 410].includes(error.status)) return;
    }
    if (over || signal.aborted) return;
    if (!document.hidden) state("lost");
    await pause(PAUSE_MS[Math.min(failures++, PAUSE_MS.length - 1)], signal);
  }
}
