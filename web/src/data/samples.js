// samples.js - the cluster over time, as this tab has seen it: use, queue and waits, every five seconds for up to two
// hours.

import { get } from "./api.js";

const EVERY_MS = 5000,
  KEPT = 1440;
const WAITS_EVERY = 3; // looks: the daemon goes through the whole queue for it
let samples = [],
  timer = 0,
  looks = 0,
  waits = null;
const listeners = new Set();

async function look() {
  if (document.hidden) return;
  try {
    const [use, queue] = await Promise.all([get("/v1/use"),
      get(`/v1/queue?limit=1${looks++ % WAITS_EVERY ? "" : "&waits=true"}`)]);
    waits = queue.waits ?? waits;
    samples = [
      ...samples.slice(1 - KEPT),
      {
        at: Date.now() / 1000,
        use: use.total,
        domains: use.domains,
        waiting: queue.total,
        waited: waits?.median_s ?? 0,
        longest: waits?.longest_s ?? 0, // of others' it is not told
      },
    ];
    for (const call of listeners) call();
  } catch {
    // the next sample may succeed; other requests report errors
  }
}

export function samplesBegin() {
  samplesEnd();
  samples = [];
  looks = 0;
  waits = null;
  timer = setInterval(look, EVERY_MS);
  look();
}

export function samplesEnd() {
  clearInterval(timer);
}

export const samplesNow = () => samples;

export function onSamples(call) {
  listeners.add(call);
  return () => listeners.delete(call);
}
