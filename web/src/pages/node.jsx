// node.jsx - one node: its hardware, who holds it now and in the past day, taking it out of service with its progress,
// its OpTasks.

import { useState } from "preact/hooks";
import { get, open, post, query } from "../data/api.js";
import { useAnswer, useThose, useVerb } from "../data/hooks.js";
import { may, useSession } from "../data/session.js";
import { amount, byRank, gpusOf, percent, resource } from "../data/amount.js";
import { Bar, Button, Card, Confirm, Facts, Link, Page, State, Table, Time, Trouble,
  Waiting } from "../parts/parts.jsx";
import { t } from "../text/text.js";

function Actions({ node, again }) {
  const { who } = useSession();
  const [asking, ask] = useState(false);
  const verb = useVerb((name) => post(`/v1/nodes/${node.id}/${name}`), again);
  if (!may(who, "nodes")) return null;
  return (
    <>
      {node.state === "ready" && <Button verb={verb} onClick={() => verb.run("cordon")}>{t("node.cordon")}</Button>}
      {node.state !== "ready" && node.state !== "lost" && <Button verb={verb} onClick={() => verb.run("enable")}>
        {t("node.enable")}</Button>}
      {node.state !== "draining" && <Button verb={verb} kind="danger" onClick={() => ask(true)}>
        {t("node.drain")}</Button>}
      <Trouble error={verb.error} />
      <Confirm
        open={asking}
        title={t("node.drain")}
        text={t("node.drain.text", { id: node.id })}
        yes={t("node.drain")}
        onYes={() => {
          ask(false);
          verb.run("drain");
        }}
        onNo={() => ask(false)}
      />
    </>
  );
}

/** Shows the progress of a drain: the instances left of those that were there when the page first saw it. */
function Drain({ drain, held }) {
  const [most, setMost] = useState(Math.max(drain.left, held));
  if (drain.left > most) setMost(drain.left);
  const done = most - drain.left;
  return (
    <Card title={t("node.drain.progress")}>
      <p role="status">{drain.left ? t("node.drain.left", { count: drain.left }) : t("node.drain.done")}</p>
      <Bar whole={Math.max(1, most)} parts={[{ value: most ? done : 1 }]} label={percent(done, most)} />
      <ul>
        {(drain.waiting ?? []).map((row) => <li>
          {row.workload} ({row.instance}): {t(`drain.${row.for.replace(" ", "-")}`)}</li>)}
      </ul>
    </Card>
  );
}

const holderColumns = () => [
  { title: t("node.devices"), of: (row) => (row.devices ?? []).join(", ") || "–" },
  { title: t("queue.owner"), of: (row) => row.owner ?? (row.group ? `(${row.group})` : t("cluster.somebody")) },
  { title: t("node.work"),
    of: (row) => (row.kind === "job" ? <Link to={`/jobs/${row.workload}`}>{row.name ?? ""} {row.workload}</Link>
    : row.kind === "app" ? <Link to={`/services/${row.workload}`}>{row.workload}</Link> : row.workload ?? "–") },
  { title: t("jobs.state"), of: (row) => <State state={row.state} /> },
  { title: t("node.since"), class: "tight", of: (row) => <Time at={row.since} /> },
  { title: t("node.until"), class: "tight", of: (row) => <Time at={row.until} guess={row.until_guess} /> },
];

function Holders({ id }) {
  const [only, know] = useThose((instance) => instance.node === id);
  const [back, setBack] = useState(0);
  const at = back ? new Date(Date.now() - back * 3600e3).toISOString() : "";
  const held = useAnswer(
    (signal) => get(query("/v1/holders", { node: id, at }), { signal }),
    [id, back],
    back ? {} : { every: 10000, on: ["instances"], rest: 200, only },
  );
  know((held.data?.items ?? []).map((row) => row.instance));
  return (
    <Card title={t("node.holders")} actions={
      <label>{t("node.at")}{" "}
        <select value={back} onChange={(e) => setBack(Number(e.currentTarget.value))}>
          {[0, 1, 3, 6, 12, 24].map((hours) => <option value={hours}>
            {hours ? t("node.ago", { hours }) : t("node.now")}</option>)}
        </select>
      </label>}>
      <Waiting of={held} />
      {held.data && (
        <Table
          caption={t("node.holders")}
          empty={t("cluster.free")}
          columns={holderColumns()}
          rows={held.data.items.map((row, i) => ({ id: row.instance ?? `other ${i}`, ...row }))}
        />
      )}
      {held.data?.incomplete && <p class="faint">{t("node.incomplete")}</p>}
    </Card>
  );
}

function Hardware({ node }) {
  const p = node.probed ?? {},
    usage = node.status.usage ?? {};
  return (
    <Card title={t("node.hardware")}>
      {byRank(Object.keys(node.allocatable ?? {})).map((name) => (
        <div class="field">
          <span>{name}: {usage[name] === undefined ? resource(name, node.allocatable[name])
            : t("node.used", { used: resource(name, usage[name]), all: resource(name, node.allocatable[name]) })}</span>
          {usage[name] !== undefined && <Bar whole={amount(node.allocatable[name])}
            parts={[{ value: amount(usage[name]) }]}
            label={percent(amount(usage[name]), amount(node.allocatable[name]))} />}
        </div>
      ))}
      <Facts rows={[
        ["GPU", gpusOf(node) ? [node.gpus].flat().map((g) => `${g.count ?? 1} × ${g.model ?? "GPU"} ${g.memory ?? ""}`)
          .join(", ") : undefined],
        [t("node.model"), p.model], [t("node.arch"), node.arch], [t("node.runtimes"), (node.runtimes ?? []).join(", ")],
        [t("node.address"), node.address],
        [t("node.disks"), (p.disks ?? []).map((d) => `${d.name} ${d.size}`).join(", ")],
        [t("node.labels"), Object.entries(node.labels ?? {}).map(([k, v]) => `${k}=${v}`).join(", ")],
      ]} />
    </Card>
  );
}

const LOG_LINES = 40;

/** Shows the end of an OpTask's log on this node. */
function OpTaskLog({ optask, node }) {
  const log = useAnswer(async (signal) => {
    const answer = await open("GET", query(`/v1/optasks/${optask}/logs`, { node, tail: LOG_LINES }), { signal });
    return { text: await answer.text() };
  }, [optask, node]);
  return (
    <>
      <h3>{t("optask.log", { optask })}</h3>
      <Waiting of={log} />
      {log.data && <pre class="log" tabIndex={0} aria-label={t("optask.log", { optask })}>
        {log.data.text || t("optask.log.none")}</pre>}
    </>
  );
}

const AGAIN = ["failed", "undone"];

/** Shows administrators' scripts on this node with their state, and a retry for failed ones. */
function OpTasks({ id }) {
  const { who } = useSession();
  const [shown, show] = useState(null);
  const list = useAnswer((signal) => get(`/v1/nodes/${encodeURIComponent(id)}/optasks`, { signal }), [id],
    { every: 5000 });
  const verb = useVerb((optask) => post(`/v1/optasks/${optask}/retry`, { nodes: [id] }), list.again);
  // The daemon demands both permissions for scripts.
  const retries = who.permissions.nodes === "all" && who.permissions.users === "all";
  const rows = (list.data?.items ?? []).map((row) => ({ ...row, id: row.optask }));
  const went = (row) => [row.fault, row.error, row.exit !== undefined ? t("optask.exit", { code: row.exit }) : ""]
    .filter(Boolean).join(": ");
  return (
    <Card title={t("optask.title")}>
      <Waiting of={list} />
      {list.data && <Table caption={t("optask.title")} rows={rows} empty={t("optask.none")} selected={shown} columns={[
        { title: "OpTask", of: (row) => row.optask },
        { title: t("jobs.state"), of: (row) => <State state={row.state} /> },
        { title: t("optask.tries"), number: true, of: (row) => row.attempt ?? 0 },
        { title: t("nodes.since"), class: "tight", of: (row) => <Time at={row.since} /> },
        { title: t("optask.went"), of: (row) => went(row) || "–" },
        { title: "", of: (row) => row.attempt > 0 && <button type="button" aria-pressed={shown === row.optask}
          onClick={() => show(shown === row.optask ? null : row.optask)}>
          {t("optask.show", { optask: row.optask })}</button> },
        { title: "", of: (row) => retries && AGAIN.includes(row.state) && <Button verb={verb}
          onClick={() => verb.run(row.optask)}>{t("optask.retry", { optask: row.optask })}</Button> },
      ]} />}
      <Trouble error={verb.error} />
      {shown && <OpTaskLog optask={shown} node={id} />}
    </Card>
  );
}

/** Shows the system services on this node. */
function SystemServices({ id }) {
  const list = useAnswer((signal) => get("/v1/system/services", { signal }), [id], { every: 10000 });
  const rows = (list.data?.items ?? [])
    .flatMap((app) => (app.status?.instances ?? []).filter((i) => i.node === id).map((i) => ({ ...i, app: app.id })));
  return (
    <Card title={t("node.system")}>
      <Waiting of={list} />
      {list.data && (
        <Table
          caption={t("node.system")}
          rows={rows}
          empty={t("node.system.none")}
          columns={[
            { title: t("node.work"), of: (row) => <Link to={`/services/${row.app}`}>{row.app}</Link> },
            { title: t("jobs.state"), of: (row) => <State state={row.state} /> },
            { title: t("service.ready"), of: (row) => (row.ready ? t("yes") : t("not")) },
          ]}
        />
      )}
    </Card>
  );
}

export function Node({ id }) {
  const { who } = useSession();
  const [only] = useThose((instance) => instance.node === id);
  const node = useAnswer((signal) => get(`/v1/nodes/${encodeURIComponent(id)}`, { signal }), [id], {
    every: 5000,
    on: ["instances"],
    rest: 150,
    only,
  });
  if (!node.data)
    return (
      <Page title={t("node.title", { id })}>
        <Waiting of={node} />
      </Page>
    );
  const n = node.data;
  return (
    <Page title={t("node.title", { id: n.display ?? n.id })} actions={<Actions node={n} again={node.again} />}>
      <Trouble error={node.error} />
      <div class="cards">
        <Card title={t("node.state")}>
          <Facts rows={[
            [t("jobs.state"), <State state={n.state} />], [t("nodes.since"), <Time at={n.since} />],
            [t("node.heard"), n.status.heard && <Time at={n.status.heard} />],
            [t("nodes.place"), [n.zone, n.rack].filter(Boolean).join(" / ")],
            [t("nodes.instances"), n.status.instances],
          ]} />
          {(n.status.conditions ?? []).map((c) => <p class="faint"><strong>{c.type}</strong>: {c.text}</p>)}
        </Card>
        {n.status.drain && <Drain drain={n.status.drain} held={n.status.instances ?? 0} />}
        <Hardware node={n} />
      </div>
      <Holders id={id} />
      {may(who, "nodes") && <OpTasks id={id} />}
      {may(who, "system") && <SystemServices id={id} />}
    </Page>
  );
}
