// colors.js - a colour for each holder: a name has the same one on every page.

// The name's hash selects the hue; if it is taken, the next free one is used, as long as there are any.
const HUES = 24;
const hues = new Map(),
  taken = new Set();

function hueOf(name) {
  if (!hues.has(name)) {
    let hash = 2166136261;
    for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
    let hue = (hash >>> 8) % HUES;
    while (taken.size < HUES && taken.has(hue)) hue = (hue + 7) % HUES;
    taken.add(hue);
    hues.set(name, (hue * 360) / HUES);
  }
  return hues.get(name);
}

const made = { light: new Map([["", "#8795a1"]]), dark: new Map([["", "#7d8b97"]]) };

export function colorOf(name, theme) {
  const colors = made[theme];
  if (!colors.has(name)) colors.set(name,
    theme === "dark" ? `hsl(${hueOf(name)} 60% 62%)` : `hsl(${hueOf(name)} 65% 42%)`);
  return colors.get(name);
}

const FACTORS = ["#0b5c94", "#c2570c", "#18794e", "#7a3fa8", "#b42318", "#8a6d00", "#0f766e", "#9d3c72", "#5b6b79",
  "#4a5bd4"];
export const factorColor = (index) => FACTORS[index % FACTORS.length];
