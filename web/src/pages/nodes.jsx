// nodes.jsx - all nodes as a table: what they have, how they do. The words of the map, for those who read rather than
// look.

import { useMemo } from "preact/hooks";
import { useCollection } from "../data/hooks.js";
import { gpusOf, resource } from "../data/amount.js";
import { filter } from "../route.js";
import { Card, Field, Link, Page, Paged, State, Time, Trouble } from "../parts/parts.jsx";
import { t } from "../text/text.js";

const STATES = ["ready", "joining", "cordoned", "draining", "lost"];

function gpuWords(node) {
  const rows = [node.gpus ?? []].flat();
  return gpusOf(node) ? `${gpusOf(node)} ${rows[0]?.model ?? ""}` : "–";
}

const order = new Intl.Collator("en", { numeric: true });
const byId = (a, b) => order.compare(a.id, b.id);

const says = (node, word) => !word || [node.id, node.zone, node.rack, ...Object.values(node.labels ?? {})]
  .some((text) => String(text ?? "").toLowerCase().includes(word));

const columns = () => [
  { title: t("node"), of: (n) => <Link to={`/nodes/${n.id}`}>{n.display ?? n.id}</Link> },
  { title: t("jobs.state"), of: (n) => <State state={n.state} /> },
  { title: t("nodes.place"), of: (n) => [n.zone, n.rack].filter(Boolean).join(" / ") || "–" },
  { title: t("cluster.cpu"), number: true, of: (n) => resource("cpu", n.allocatable?.cpu) },
  { title: t("cluster.memory"), number: true, of: (n) => resource("memory", n.allocatable?.memory) },
  { title: t("cluster.gpu"), of: gpuWords },
  { title: t("nodes.instances"), number: true, of: (n) => n.status?.instances ?? "–" },
  { title: t("nodes.conditions"), of: (n) => (n.status?.conditions ?? []).map((c) => c.type).join(", ") },
  { title: t("nodes.since"), class: "tight", of: (n) => <Time at={n.since} /> },
];

export function Nodes({ query }) {
  const nodes = useCollection("nodes");
  const word = (query.find ?? "").toLowerCase();
  const rows = useMemo(() => [...nodes.items.values()]
    .filter((n) => (!query.state || n.state === query.state) && says(n, word)).sort(byId),
    [nodes.version, query.state, word]);
  const change = (name) => (e) => filter("/nodes", { ...query, [name]: e.currentTarget.value });
  return (
    <Page title={t("page.nodes")}>
      <Card title={t("nodes.count", { count: rows.length })}>
        <form class="fields" onSubmit={(e) => e.preventDefault()} aria-label={t("queue.filters")}>
          <Field label={t("nodes.find")}>
            {(props) => <input {...props} value={query.find ?? ""} onInput={change("find")} />}</Field>
          <Field label={t("jobs.state")}>
            {(props) => (
              <select {...props} value={query.state ?? ""} onChange={change("state")}>
                <option value="">{t("all")}</option>
                {STATES.map((state) => (
                  <option value={state}>{t(`state.${state}`)}</option>
                ))}
              </select>
            )}
          </Field>
        </form>
        <Trouble error={nodes.error} />
        {nodes.ready ? <Paged key={`${query.state} ${word}`} caption={t("page.nodes")} rows={rows}
          columns={columns()} />
          : <p class="faint" role="status">{t("loading")}</p>}
      </Card>
    </Page>
  );
}
