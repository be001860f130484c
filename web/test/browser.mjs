// browser.mjs - a real browser for the tests: the distribution's chromium, driven by playwright-core, that talks to
// nobody but the daemon. What a page says on its console, and what it asks of other hosts, is kept: there must be
// nothing.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";
import { PATIENCE } from "./scene.mjs";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const program = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
  .find((path) => existsSync(path));
let browser = null;

/** Opens a page, signed in with `token` (without one: the sign-in page), in a context of its own; `trouble` collects
 * the errors of the page. */
export async function visit(url, { token, width = 1280, height = 900, theme = "light", language = "en", zone } = {}) {
  browser ??= await chromium.launch({ executablePath: program, headless: true, args: FLAGS });
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme,
    locale: language === "zh" ? "zh-CN" : "en-GB", timezoneId: zone });
  const page = await context.newPage(), trouble = [], own = new URL(url).host;
  page.setDefaultTimeout(1000 * PATIENCE);
  // Other tests change this machine's networks meanwhile; chromium then drops its connections.
  page.on("console", (m) => {
    if ((m.type() === "error" || m.type() === "warning") &&
    !m.text().includes("ERR_NETWORK_CHANGED")) trouble.push(`console: ${m.text()}`); });
  page.on("pageerror", (error) => trouble.push(`error: ${error.stack ?? error}`));
  page.on("request", (request) => { if (new URL(request.url()).host !== own) trouble.push(`request: ${request.url()}`);
    });
  if (token) await page.addInitScript((text) => sessionStorage.setItem("berth.token", text), token);
  return { page, trouble, context, close: () => context.close(), go: (path) => page.goto(`${url}/#/${path}`) };
}

/** Closes the browser at the end of the tests. */
export async function leave() {
  await browser?.close();
  browser = null;
}
