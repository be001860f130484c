// amount.js - amounts and times of documents, as numbers and as text for people.

const UNITS = { m: 1e-3, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30,
  Ti: 2 ** 40, Pi: 2 ** 50 };

/** Converts 2, "1.9", "500m" or "16Gi" to a number; 0 if there is none. */
export function amount(value) {
  if (typeof value === "number") return value;
  const parts = /^([0-9.]+)([A-Za-z]*)$/.exec(value ?? "");
  return parts ? Number(parts[1]) * (UNITS[parts[2]] ?? 1) : 0;
}

const round = (value, digits) => String(Number(value.toFixed(digits)));

export function bytes(value) {
  let unit = 0,
    left = value;
  while (left >= 1024 && unit < 5) {
    left /= 1024;
    unit++;
  }
  return `${round(left, left < 10 ? 1 : 0)} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`;
}

export const number = (value) => round(value, Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0);
export const percent = (part, whole) => (whole > 0 ? `${Math.round((100 * part) / whole)} %` : "–");

/** Formats an amount of a resource in its unit. */
export const resource = (name, value) =>
  (name === "memory" || name === "storage" ? bytes(amount(value)) : number(amount(value)));

/** Formats seconds as "3 d 4 h", "2 h 5 min", "40 s": the two largest units. */
export function span(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s < 600 && s % 60 ? ` ${s % 60} s` : ""}`;
  if (s < 86400) return `${Math.floor(s / 3600)} h${s % 3600 >= 60 ? ` ${Math.floor((s % 3600) / 60)} min` : ""}`;
  return `${Math.floor(s / 86400)} d${s % 86400 >= 3600 ? ` ${Math.floor((s % 86400) / 3600)} h` : ""}`;
}

export const moment = (text) => (text ? Date.parse(text) : NaN);
export const between = (from, to) => span((moment(to) - moment(from)) / 1000);

/** Returns the number of a node's GPUs. */
export const gpusOf = (node) => [node.gpus ?? []].flat().reduce((sum, row) => sum + (row.count ?? 1), 0);

const ORDER = ["pods", "gpu", "cpu", "memory"];
const rank = (name) => (ORDER.indexOf(name) < 0 ? ORDER.length : ORDER.indexOf(name));

/** Sorts names of resources, the important ones first. */
export const byRank = (names) => names.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));

/** Formats a request in a few words: "2 pods, 4 gpu, 8 cpu, 16 GiB memory". */
export const asked = (what) =>
  byRank(Object.keys(what ?? {}))
    .filter((name) => name !== "pods" || what[name] > 1)
    .map((name) => `${resource(name, what[name])} ${name}`)
    .join(", ");
