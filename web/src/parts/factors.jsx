// factors.jsx - explains a queue position: each factor of the key as a part of a bar.

import { factorColor } from "./colors.js";
import { number } from "../data/amount.js";
import { t } from "../text/text.js";

/** Returns the parts of a row's key: the terms if the ranking has some, else the factors. */
export const partsOf = ({ factors, terms }) => (terms?.length ? terms : factors);

/**
 * Factors that count for the order; where the ranking weighs none, the plain values of those that `named` lets pass.
 */
export function counted(factors, named = () => true) {
  const weighed = factors.some((f) => f.product !== 0);
  return factors
    .map((f, i) => ({ name: f.name, text: f.text, color: factorColor(i), value: weighed ? f.product : f.value, of: f }))
    .filter((f) => f.value !== 0 && named(f.name));
}

const sum = (parts) => parts.reduce((all, f) => all + Math.abs(f.value), 0);

export const largest = (lists, named) => Math.max(1e-9, ...lists.map((factors) => sum(counted(factors, named))));

export function FactorBar({ factors, whole, named }) {
  const parts = counted(factors ?? [], named);
  const label = parts.map((f) => `${f.name} ${number(f.value)}`).join(", ") || t("factors.none");
  return (
    <span class="bar" role="img" aria-label={label} title={label}>
      {parts.map((f) => <span class="part"
        style={{ background: f.color, width: `${(100 * Math.abs(f.value)) / (whole || sum(parts))}%` }} />)}
    </span>
  );
}

export function FactorLegend({ lists, named }) {
  const seen = new Map();
  for (const factors of lists) for (const f of counted(factors, named)) seen.set(f.name, f);
  return (
    <ul class="legend">
      {[...seen.values()].map((f) => <li title={f.text}><span class="swatch" style={{ background: f.color }} />
        {f.name}</li>)}
    </ul>
  );
}
