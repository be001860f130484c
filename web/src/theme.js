// theme.js - dark or light: the user's choice, else the system's setting.

const KEY = "berth.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

export const themeNow = () => localStorage.getItem(KEY) ?? (dark.matches ? "dark" : "light");

let onTheme = () => {};

function show() {
  document.documentElement.dataset.theme = themeNow();
  onTheme(themeNow());
}

/** Calls `call` with the theme from now on, also when the system changes it. */
export function whenTheme(call) {
  onTheme = call;
}

export function themeSet(name) {
  localStorage.setItem(KEY, name);
  show();
}

export function themeBegin() {
  show();
  dark.addEventListener("change", show);
}
