// tiles.jsx - every node as a small tile on a canvas: a border for its state, a cell for each GPU in the colour of its
// holder, two thin bars for CPU and memory. Drawn whole in one go when something has changed; what is chosen is an
// element above it.
//
// For keyboards and screen readers: the arrow keys move from tile to tile, and the text of the hover is read out.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { amount, gpusOf } from "../data/amount.js";
import { holderName } from "../data/holders.js";
import { colorOf } from "./colors.js";

const HEAD = 20,
  HEAD_WIDTH = 110,
  GAP = 3,
  COLUMNS_MIN = 8;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function sizeOf(count, gpus) {
  const cell = count > 1500 ? 5 : count > 400 ? 7 : count > 100 ? 11 : 18;
  const columns = Math.max(2, Math.min(4, Math.ceil(gpus / 2))),
    rows = Math.max(1, Math.ceil(gpus / columns));
  return { cell, columns, width: columns * (cell + 1) + 7, height: rows * (cell + 1) + 12 };
}

/** Returns the position of each group's title and of each tile. Groups are blocks side by side as long as they fit. */
function layout(groups, width) {
  const nodes = groups.flatMap((group) => group.nodes);
  const size = sizeOf(
    nodes.length,
    nodes.reduce((most, node) => Math.max(most, gpusOf(node)), 1),
  );
  const stepX = size.width + GAP,
    stepY = size.height + GAP;
  const perRow = Math.max(1, Math.floor((width + GAP) / stepX));
  const tiles = [],
    heads = [];
  let x = 0,
    y = 0,
    below = 0;
  for (const group of groups) {
    const columns = Math.min(perRow, group.nodes.length,
      Math.max(COLUMNS_MIN, Math.ceil(Math.sqrt(2 * group.nodes.length)))),
      wide = Math.max(columns * stepX, HEAD_WIDTH);
    if (x > 0 && x + wide > width) { x = 0; y = below; }
    const top = y + (groups.length > 1 || group.name ? HEAD : 0);
    if (top > y) heads.push({ text: `${group.name} (${group.nodes.length})`, x, y, width: wide - GAP });
    group.nodes.forEach((node, i) =>
      tiles.push({ node, gpus: gpusOf(node), x: x + (i % columns) * stepX, y: top + Math.floor(i / columns) * stepY }));
    below = Math.max(below, top + Math.ceil(group.nodes.length / columns) * stepY + 6);
    x += wide + 4 * GAP;
  }
  return { tiles, heads, size, height: Math.max(below, 30) };
}

const borders = { ready: "--line", joining: "--busy", cordoned: "--warn", disabled: "--warn", draining: "--warn",
  drained: "--warn" };

function share(node, name) {
  const there = amount(node.allocatable?.[name]);
  return there > 0 ? Math.min(1, amount(node.status?.usage?.[name]) / there) : 0;
}

function drawTile(pen, tile, size, held, colors, theme) {
  const { node, gpus, x, y } = tile,
    state = node.state ?? node.status?.state;
  pen.fillStyle = colors["--card"];
  pen.fillRect(x, y, size.width, size.height);
  pen.strokeStyle = colors[borders[state] ?? "--bad"];
  pen.lineWidth = state === "ready" ? 1 : 2;
  pen.strokeRect(x + 0.5, y + 0.5, size.width - 1, size.height - 1);
  const owners = [];
  for (const holder of held?.values() ?? []) for (const gpu of holder.gpus) owners[gpu] = holder;
  for (let gpu = 0; gpu < gpus; gpu++) {
    pen.fillStyle = owners[gpu] ? colorOf(holderName(owners[gpu]), theme) : colors["--idle"];
    pen.fillRect(x + 4 + (gpu % size.columns) * (size.cell + 1),
      y + 4 + Math.floor(gpu / size.columns) * (size.cell + 1), size.cell, size.cell);
  }
  if (!gpus && held?.size) {
    pen.fillStyle = colorOf(holderName(held.values().next().value), theme);
    pen.fillRect(x + 4, y + 4, size.width - 8, size.cell);
  }
  const bar = size.width - 6;
  pen.fillStyle = colors["--track"];
  pen.fillRect(x + 3, y + size.height - 7, bar, 2);
  pen.fillRect(x + 3, y + size.height - 4, bar, 2);
  if (!node.status?.usage) return;
  pen.fillStyle = colors["--one"];
  pen.fillRect(x + 3, y + size.height - 7, bar * share(node, "cpu"), 2);
  pen.fillStyle = colors["--two"];
  pen.fillRect(x + 3, y + size.height - 4, bar * share(node, "memory"), 2);
}

const COLORS = ["--line", "--busy", "--warn", "--bad", "--idle", "--track", "--one", "--two", "--faint", "--card"];

function draw(canvas, plan, width, holders, theme) {
  const ratio = devicePixelRatio || 1,
    pen = canvas.getContext("2d", { alpha: false });
  const colors = Object.fromEntries(COLORS.map((name) => [name, css(name)]));
  canvas.width = width * ratio;
  canvas.height = plan.height * ratio;
  canvas.style.height = `${plan.height}px`;
  pen.scale(ratio, ratio);
  pen.fillStyle = colors["--card"];
  pen.fillRect(0, 0, width, plan.height);
  pen.font = "600 12px system-ui, sans-serif";
  pen.fillStyle = colors["--faint"];
  for (const head of plan.heads) pen.fillText(head.text, head.x, head.y + 14, head.width);
  for (const tile of plan.tiles) drawTile(pen, tile, plan.size, holders.nodes.get(tile.node.id), colors, theme);
}

function tileAt(plan, x, y) {
  return plan.tiles.findIndex((tile) => x >= tile.x && x < tile.x + plan.size.width && y >= tile.y &&
    y < tile.y + plan.size.height);
}

/** Returns the nearest tile in the next row up or down, or the same tile if there is none. */
function vertical(plan, from, sign) {
  const at = plan.tiles[from],
    far = (tile) => Math.abs(tile.y - at.y) * 8 + Math.abs(tile.x - at.x);
  let best = from;
  plan.tiles.forEach((tile, i) => {
    if (sign * (tile.y - at.y) > 0 && (best === from || far(tile) < far(plan.tiles[best]))) best = i;
  });
  return best;
}

const STEPS = {
  ArrowRight: (_, from) => from + 1,
  ArrowLeft: (_, from) => from - 1,
  ArrowDown: (plan, from) => vertical(plan, from, 1),
  ArrowUp: (plan, from) => vertical(plan, from, -1),
};

/** groups: [{name, nodes}]; `describe(node)` returns the text of the hover, `onOpen(node)` handles a click or Enter. */
export function Tiles({ groups, holders, theme, label, describe, onOpen }) {
  const box = useRef(null),
    canvas = useRef(null);
  const [width, setWidth] = useState(0),
    [chosen, choose] = useState(-1);
  useEffect(() => {
    const look = new ResizeObserver(() => box.current && setWidth(Math.floor(box.current.clientWidth)));
    look.observe(box.current);
    return () => look.disconnect();
  }, []);
  const plan = useMemo(() => layout(groups, width || 300), [groups, width]);
  useEffect(() => {
    if (width) draw(canvas.current, plan, width, holders, theme);
  }, [plan, holders.version, theme]);

  const place = (event) => {
    const edge = canvas.current.getBoundingClientRect();
    return tileAt(plan, event.clientX - edge.left, event.clientY - edge.top);
  };
  const key = (event) => {
    if (STEPS[event.key] && plan.tiles.length) {
      event.preventDefault();
      choose(chosen < 0 ? 0 : Math.max(0, Math.min(plan.tiles.length - 1, STEPS[event.key](plan, chosen))));
    } else if (event.key === "Enter" && plan.tiles[chosen]) {
      onOpen(plan.tiles[chosen].node);
    } else if (event.key === "Escape") {
      choose(-1);
    }
  };
  const tile = plan.tiles[chosen];
  const right = tile && tile.x > width / 2;
  return (
    <div class="tiles" ref={box}>
      <canvas ref={canvas} tabIndex={0} role="application" aria-label={label} onKeyDown={key} onBlur={() => choose(-1)}
        onMouseMove={(e) => { const at = place(e); if (at !== chosen) choose(at); }} onMouseLeave={() => choose(-1)}
        onClick={(e) => { const at = plan.tiles[place(e)]; if (at) onOpen(at.node); }} />
      {tile && <div class="chosen"
        style={{ left: `${tile.x - 2}px`, top: `${tile.y - 2}px`, width: `${plan.size.width + 4}px`,
        height: `${plan.size.height + 4}px` }} />}
      <div aria-live="polite">
        {tile && (
          <div class="hover" style={{ top: `${tile.y + plan.size.height + 6}px`, left: right ? "auto" : `${tile.x}px`,
            right: right ? `${width - tile.x - plan.size.width}px` : "auto" }}>
            {describe(tile.node)}
          </div>
        )}
      </div>
    </div>
  );
}
