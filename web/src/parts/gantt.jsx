// gantt.jsx - the plan ahead as bars over time: running work until its expected end, waiting work from its expected
// start.

import { span } from "../data/amount.js";
import { t, ticks, when } from "../text/text.js";

const ROW = 18,
  LEFT = 150,
  WIDTH = 1000,
  TOP = 22;
const STEPS_S = [60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 7 * 86400, 30 * 86400];

const times = (row) => `${when(new Date(row.start))} – ${when(new Date(row.end))}`;

/** rows: [{id, label, kind: "runs" | "next" | "fills", start, end, href}], times in milliseconds. */
export function Gantt({ rows, now, label }) {
  const last = Math.max(now + 600e3, ...rows.map((row) => Math.min(row.end, now + 30 * 86400e3)));
  const x = (at) => LEFT + ((Math.max(now, Math.min(at, last)) - now) / (last - now)) * (WIDTH - LEFT - 10);
  const step = STEPS_S.find((s) => (last - now) / 1000 / s <= 8) ?? STEPS_S.at(-1);
  const marks = [];
  for (let at = Math.ceil(now / 1000 / step) * step; at * 1000 < last; at += step) marks.push(at);
  const words = ticks(marks, step);
  const height = TOP + rows.length * ROW + 4;
  return (
    <>
      <div class="gantt" tabIndex={0} role="group" aria-label={label}>
        <svg viewBox={`0 0 ${WIDTH} ${height}`} role="group"
          aria-label={t("gantt.label", { count: rows.length, span: span((last - now) / 1000) })}>
          {marks.map((at, i) => (
            <g><line class="tick" x1={x(at * 1000)} x2={x(at * 1000)} y1={TOP - 4} y2={height} /><text
              x={x(at * 1000) + 2} y={12}>{words[i]}</text></g>
          ))}
          {rows.map((row, i) => (
            <a href={row.href} aria-label={`${row.label}: ${t(`gantt.${row.kind}`)}, ${times(row)}`}>
              <text x={0} y={TOP + i * ROW + 12}>{row.label.slice(0, 22)}</text>
              <rect class={row.kind} x={x(row.start)} y={TOP + i * ROW + 2} height={ROW - 5} rx={3}
                width={Math.max(3, x(row.end) - x(row.start))}>
                <title>{`${row.label}: ${times(row)}`}</title>
              </rect>
            </a>
          ))}
          <line class="now" x1={LEFT} x2={LEFT} y1={TOP - 6} y2={height} />
        </svg>
      </div>
      <ul class="legend">
        {[
          ["runs", "--three"],
          ["next", "--one"],
          ["fills", "--two"],
        ].map(([kind, color]) => (
          <li>
            <span class="swatch" style={{ background: `var(${color})` }} />
            {t(`gantt.${kind}`)}
          </li>
        ))}
      </ul>
    </>
  );
}
