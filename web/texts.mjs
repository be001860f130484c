// texts.mjs - checks that every language has the same texts with the same placeholders, and that every used text
// exists. Prints one line for each fault; the status is 1 if there are any.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const src = new URL("./src/", import.meta.url).pathname;
const en = (await import("./src/text/en.js")).default, zh = (await import("./src/text/zh.js")).default;
const wrong = [];
const places = (text) => (text.match(/\{\w+\}/g) ?? []).sort().join();

for (const key of Object.keys({ ...en, ...zh })) {
  if (!(key in en) || !(key in zh)) wrong.push(`${key}: not in ${key in en ? "zh" : "en"}`);
  else if (places(en[key]) !== places(zh[key])) wrong.push(
    `${key}: ${places(en[key])} in en, ${places(zh[key])} in zh`);
}
for (const file of readdirSync(src, { recursive: true }).filter((name) => /\.jsx?$/.test(name))) {
  const text = readFileSync(join(src, file), "utf8");
  for (const [, key] of text.matchAll(/\bt\("([^"]+)"/g)) if (!(key in en)) wrong.push(`${file}: ${key} is no text`);
}
for (const line of wrong) console.log(line);
process.exit(wrong.length ? 1 : 0);
