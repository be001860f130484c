// theme.js - dark or light: what was chosen here, else what the system says.

const KEY = "berth.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

export const themeNow = () => localStorage.getItem(KEY) ?? (dark.matches ? "dark" : "light");

let onTheme = () => {};

function show() {
  document.documentElement.dataset.theme = themeNow();
  onTheme(themeNow());
}

/** Called with the theme that is shown from now on, also when the system has changed it. */
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
