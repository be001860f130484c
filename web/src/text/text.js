// text.js - texts in the user's language, from one table per language with the same keys.

import en from "./en.js";
import zh from "./zh.js";

export const languages = { en: "English", zh: "中文" };
const tables = { en, zh };
const KEY = "berth.language";
let language = localStorage.getItem(KEY) ?? (navigator.language?.startsWith("zh") ? "zh" : "en");
if (!tables[language]) language = "en";

export const languageNow = () => language;

export function languageSet(name) {
  language = name;
  localStorage.setItem(KEY, name);
  document.documentElement.lang = name;
}

/** Returns the text of a key, with {name} replaced by values. A state or word of the API without a key is returned
 * unchanged. */
export function t(key, values = {}) {
  const text = tables[language][key] ?? en[key] ?? key.slice(key.indexOf(".") + 1);
  return text.replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}

const clock = () => new Intl.DateTimeFormat(language,
  { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = () => new Intl.DateTimeFormat(language,
  { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

const short = (seconds) => new Intl.DateTimeFormat(language,
  { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...(seconds ? { second: "2-digit" } : {}) });

/** Returns labels of times (in seconds) along an axis with `step` seconds between them. */
export function ticks(moments, step) {
  const format = step >= 86400 ? day() : short(step < 60);
  return moments.map((at) => format.format(at * 1000));
}

/** Formats a time for people: today only the time, else with the date. */
export function when(text) {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return "–";
  return (at.toDateString() === new Date().toDateString() ? clock() : day()).format(at);
}
