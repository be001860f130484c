// cluster.jsx - the whole cluster on one page: use, the map of nodes, and plots of the last hour or week.

import { useEffect, useMemo, useState } from "preact/hooks";
import { get, query as queried } from "../data/api.js";
import { useAnswer, useCollection } from "../data/hooks.js";
import { holderName, useHolders } from "../data/holders.js";
import { onSamples, samplesNow } from "../data/samples.js";
import { useSession } from "../data/session.js";
import { bytes, gpusOf, number, percent, resource, span } from "../data/amount.js";
import { filter, go } from "../route.js";
import { Card, Page, State, Time, Trouble, Waiting } from "../parts/parts.jsx";
import { Plot } from "../parts/plot.jsx";
import { Tiles } from "../parts/tiles.jsx";
import { colorOf } from "../parts/colors.js";
import { t } from "../text/text.js";

const LEGEND_MAX = 12;

function useSamples() {
  const [samples, set] = useState(samplesNow());
  useEffect(() => onSamples(() => set(samplesNow())), []);
  return samples;
}

function Numbers({ sample }) {
  if (!sample)
    return (
      <p class="faint" role="status">
        {t("loading")}
      </p>
    );
  const { use } = sample;
  const rows = [
    ["nodes", `${use.ready}`, t("of", { all: use.nodes })],
    ["gpu", number(use.gpu.held),
      t("of.percent", { all: number(use.gpu.there), percent: percent(use.gpu.held, use.gpu.there) })],
    ["cpu", number(use.cpu.held),
      t("of.percent", { all: number(use.cpu.there), percent: percent(use.cpu.held, use.cpu.there) })],
    ["memory", bytes(use.memory.held),
      t("of.percent", { all: bytes(use.memory.there), percent: percent(use.memory.held, use.memory.there) })],
    ["waiting", String(sample.waiting), ""],
    ["longest", span(sample.longest), ""],
  ];
  return (
    <dl class="numbers">
      {rows.map(([key, value, more]) => (
        <div><dt>{t(`cluster.${key}`)}</dt><dd data-number={key}>{value} <small>{more}</small></dd></div>
      ))}
    </dl>
  );
}

const groupers = {
  domain: (node) => node.domain ?? "",
  rack: (node) => [node.zone, node.rack].filter(Boolean).join(" / "),
  zone: (node) => node.zone ?? "",
  none: () => "",
};

function grouped(items, by) {
  const groups = new Map();
  for (const node of items.values()) {
    const name = (groupers[by] ?? groupers.rack)(node);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(node);
  }
  const order = new Intl.Collator("en", { numeric: true }).compare;
  return [...groups]
    .sort(([a], [b]) => order(a, b))
    .map(([name, nodes]) => ({
      name: name || (groups.size > 1 ? t("cluster.ungrouped") : ""),
      nodes: nodes.sort((a, b) => order(a.id, b.id)),
    }));
}

function Holding({ node, held }) {
  const rows = [...(held?.values() ?? [])];
  return (
    <>
      <p>
        <strong>{node.id}</strong> <State state={node.state ?? "ready"} />
      </p>
      <p class="faint">
        {t("cluster.tile", {
          cpu: resource("cpu", node.allocatable?.cpu), memory: resource("memory", node.allocatable?.memory),
          gpus: gpusOf(node),
        })}
      </p>
      {rows.slice(0, 8).map((row) => (
        <p>
          {row.gpus.length ? `GPU ${row.gpus.join(", ")}: ` : ""}
          {holderName(row) || t("cluster.somebody")}
          {row.workload ? ` · ${row.name ?? ""} ${row.workload}` : ""}
        </p>
      ))}
      {rows.length > 8 && <p class="faint">{t("cluster.more", { count: rows.length - 8 })}</p>}
      {!rows.length && <p class="faint">{t("cluster.free")}</p>}
    </>
  );
}

/** Returns the number of GPUs per holder, or of pods for holders without GPUs; most GPUs first. */
function holdersByName(holders) {
  const counts = new Map();
  for (const held of holders.nodes.values())
    for (const row of held.values()) {
      const count = counts.get(holderName(row)) ?? { gpus: 0, pods: 0 };
      counts.set(holderName(row), { gpus: count.gpus + row.gpus.length, pods: count.pods + 1 });
    }
  return [...counts].sort(([, a], [, b]) => b.gpus - a.gpus || b.pods - a.pods);
}

function NodeMap({ nodes, holders, by }) {
  const { theme } = useSession();
  const groups = useMemo(() => grouped(nodes.items, by), [nodes.version, by]);
  const names = useMemo(() => holdersByName(holders), [holders.version]);
  return (
    <>
      <Tiles groups={groups} holders={holders} theme={theme} label={t("cluster.map", { count: nodes.items.size })}
        describe={(node) => <Holding node={node} held={holders.nodes.get(node.id)} />}
        onOpen={(node) => go(`/nodes/${node.id}`)} />
      <ul class="legend">
        {names.slice(0, LEGEND_MAX).map(([name, count]) => (
          <li>
            <span class="swatch" style={{ background: colorOf(name, theme) }} />{name || t("cluster.somebody")} (
            {count.gpus ? t("cluster.gpus", { count: count.gpus }) : t("cluster.pods", { count: count.pods })})
          </li>
        ))}
        {names.length > LEGEND_MAX && <li>{t("cluster.others", { count: names.length - LEGEND_MAX })}</li>}
        <li>
          <span class="swatch" />
          {t("cluster.idle")}
        </li>
      </ul>
    </>
  );
}

const SPANS = ["hour", "week"];

/** Shows use, queue and waits from the daemon's own history, which is complete when the page opens. */
function OverTime({ chosen, choose }) {
  const series = useAnswer((signal) => get(queried("/v1/series", { span: chosen }), { signal }), [chosen],
    { every: 10000 });
  const s = series.data;
  const line = (label, color, values) => ({ label: t(label), color, values });
  const part = (name) => s[name].held.map((held, i) => (s[name].there[i] ? (100 * held) / s[name].there[i] : 0));
  return (
    <>
      <div class="head">
        <h2>{t("cluster.time")}</h2>
        <label>
          {t("cluster.span")}{" "}
          <select value={chosen} onChange={(e) => choose(e.currentTarget.value)}>
            {SPANS.map((name) => (
              <option value={name}>{t(`cluster.span.${name}`)}</option>
            ))}
          </select>
        </label>
      </div>
      <Waiting of={series} />
      {s && (
        <div class="cards">
          <Card title={t("cluster.plot.use")}>
            <Plot times={s.at} label={t("cluster.plot.use")} format={(v) => `${Math.round(v)} %`}
              lines={[line("cluster.gpu", "--one", part("gpu")), line("cluster.cpu", "--two", part("cpu")),
                line("cluster.memory", "--three", part("memory"))]} />
          </Card>
          <Card title={t("cluster.plot.queue")}>
            <Plot times={s.at} label={t("cluster.plot.queue")} format={(v) => String(Math.round(v))}
              lines={[line("cluster.waiting", "--one", s.waiting)]} />
          </Card>
          <Card title={t("cluster.plot.waits")}>
            <Plot times={s.at} label={t("cluster.plot.waits")} format={span}
              lines={[line("cluster.median", "--one", s.median_wait_s),
                line("cluster.longest", "--two", s.longest_wait_s)]} />
          </Card>
        </div>
      )}
      {s && (
        <p class="faint">
          {t("cluster.since")} <Time at={s.since} />
        </p>
      )}
    </>
  );
}

export function Cluster({ query }) {
  const nodes = useCollection("nodes"),
    holders = useHolders(),
    samples = useSamples();
  const by = query.by ?? "rack";
  return (
    <Page title={t("page.cluster")}>
      <Card label={t("cluster.numbers")}>
        <Numbers sample={samples.at(-1)} />
      </Card>
      <Card
        title={t("cluster.nodes")}
        actions={
          <label>
            {t("cluster.by")}{" "}
            <select value={by} onChange={(e) => filter("/cluster", { ...query, by: e.currentTarget.value })}>
              {Object.keys(groupers).map((name) => (
                <option value={name}>{t(`cluster.by.${name}`)}</option>
              ))}
            </select>
          </label>
        }
      >
        <Trouble error={nodes.error} />
        {nodes.ready ? <NodeMap nodes={nodes} holders={holders} by={by} />
          : <p class="faint" role="status">{t("loading")}</p>}
      </Card>
      <OverTime chosen={query.span ?? "hour"} choose={(name) => filter("/cluster", { ...query, span: name })} />
    </Page>
  );
}
