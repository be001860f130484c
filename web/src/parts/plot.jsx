// plot.jsx - lines over time, by uPlot, in the colours of the theme.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useSession } from "../data/session.js";
import { ticks } from "../text/text.js";

const SPAN_MIN_S = 60;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** `times` in seconds; lines: [{label, values, color: a variable of the style sheet, dash}]. */
export function Plot({ times, lines, label, height = 150, format = String, min = 0 }) {
  const box = useRef(null),
    plot = useRef(null);
  const { theme } = useSession();

  useEffect(() => {
    const axis = { stroke: css("--faint"), grid: { stroke: css("--line"), width: 1 },
      ticks: { stroke: css("--line"), width: 1 } };
    plot.current = new uPlot({
      width: box.current.clientWidth || 300, height,
      cursor: { y: false },
      legend: { live: true },
      scales: { x: { range: (_, low, high) => [Math.min(low, high - SPAN_MIN_S), high] },
        y: { range: (_, low, high) => [Math.min(min, low ?? 0), Math.max(high ?? 1, min + 1e-9) * 1.05 || 1] } },
      axes: [{ ...axis, values: (_, at, __, ___, step) => ticks(at, step) },
        { ...axis, size: 62, values: (_, values) => values.map(format) }],
      series: [
        { value: (_, at) => (at ? new Date(at * 1000).toLocaleTimeString() : "–") },
        ...lines.map((line) => ({
          label: line.label, stroke: css(line.color), width: 2, dash: line.dash, points: { show: times.length < 3 },
          fill: line.dash ? undefined : `${css(line.color)}22`,
          value: (_, value) => (value == null ? "–" : format(value)),
        })),
      ],
    }, [times, ...lines.map((line) => line.values)], box.current);
    const resize = new ResizeObserver(() => {
      if (box.current) plot.current.setSize({ width: box.current.clientWidth, height });
    });
    resize.observe(box.current);
    return () => {
      resize.disconnect();
      plot.current.destroy();
    };
  }, [theme, lines.map((line) => line.label).join(), label]);
  useEffect(() => plot.current?.setData([times, ...lines.map((line) => line.values)]), [times, lines]);

  return <div class="plot" role="img" aria-label={label} ref={box} />;
}
