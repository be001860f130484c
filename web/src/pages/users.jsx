// users.jsx - users and groups: what they hold of their quotas, what they have used and what that costs, who is owed
// the most.

import { useMemo, useState } from "preact/hooks";
import { get, getAll, patch, query } from "../data/api.js";
import { useAnswer, useVerb } from "../data/hooks.js";
import { may, useSession } from "../data/session.js";
import { amount, asked, byRank, number, percent, resource, span } from "../data/amount.js";
import { Bar, Card, Dialog, Entry, Page, Paged, Table, Time, Waiting } from "../parts/parts.jsx";
import { Form, numeric } from "../parts/form.jsx";
import { t } from "../text/text.js";

/** Shows the usage of each limited resource: within the guarantee, and borrowed. */
function Quota({ use }) {
  const names = byRank(Object.keys(use ?? {})).filter((name) => use[name].limit !== undefined ||
    use[name].guaranteed !== undefined || use[name].admitted !== undefined);
  if (!names.length) return <span class="faint">{t("users.unbounded")}</span>;
  return names.map((name) => {
    // The API writes memory as "16Gi" and parts of a core as "125m".
    const of = (part) => (use[name][part] === undefined ? undefined : amount(use[name][part]));
    const held = of("held") ?? 0, limit = of("limit"), guaranteed = of("guaranteed"), admitted = of("admitted");
    const whole = limit ?? admitted ?? guaranteed, right = guaranteed === undefined ? held : Math.min(held, guaranteed);
    const used = t("node.used", { used: resource(name, held), all: resource(name, whole) });
    const more = guaranteed === undefined ? "" : `, ${t("users.guaranteed", { amount: resource(name, guaranteed) })}`;
    const label = `${name}: ${used}${more}`;
    return <div><small>{label}</small><Bar whole={Math.max(whole, held)} label={label}
      parts={[{ value: right }, { value: held - right, kind: "borrowed" }]} /></div>;
  });
}

const STEPS = [
  ["limits", "users.limits"],
  ["guarantees", "users.guarantees"],
  ["admitted", "users.admitted"],
];

/** Parses "gpu=8 cpu=64" as amounts. */
function amounts(text, field) {
  const out = {};
  for (const word of text
    .trim()
    .split(/[\s,]+/)
    .filter(Boolean)) {
    const [name, value, more] = word.split("=");
    if (!name || !value || more !== undefined) throw Object.assign(new Error(t("users.amounts", { word })),
      { field: `quota.${field}` });
    out[name] = numeric(value);
  }
  return out;
}

const said = (what) =>
  Object.entries(what ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");

function Edit({ kind, object, done, leave }) {
  const verb = useVerb((values) => {
    const quota = { ...object.quota };
    for (const [name] of STEPS) {
      const given = amounts(values[name] ?? "", name);
      // A patch keeps members that it does not name.
      const gone = Object.fromEntries(Object.keys(object.quota?.[name] ?? {}).map((had) => [had, null]));
      quota[name] = Object.keys(given).length ? { ...gone, ...given } : null;
    }
    return patch(`/v1/${kind}/${object.id}`, { quota, weight: values.weight ? numeric(values.weight) : null });
  }, done);
  return (
    <Form label={t("users.edit", { id: object.id })} verb={verb} submit={t("save")}
      initial={{ ...Object.fromEntries(STEPS.map(([name]) => [name, said(object.quota?.[name])])),
        weight: String(object.weight ?? "") }}
      fields={[
        ...STEPS.map(([name, key]) =>
        ({ name, label: t(key), of: `quota.${name}`, size: 26, placeholder: "gpu=8 cpu=64" })),
        { name: "weight", label: t("users.weight"), size: 6 }]}>
      {() => <button type="button" onClick={leave}>{t("close")}</button>}
    </Form>
  );
}

const PERIODS = { day: 86400, week: 7 * 86400, month: 30 * 86400 };

/** Returns the cost of hours by the prices; `free` outcomes cost nothing. For cores, memory and GPUs, which sums of
 * usage have. */
function cost(row, prices) {
  if ((prices.free ?? []).includes(row.outcome)) return 0;
  const { cpu = 0, memory = 0, gpu = 0 } = prices.prices;
  const factor = prices.queues?.[row.queue] ?? 1;
  return factor * (cpu * row.core_hours + memory * row.memory_gib_hours + gpu * row.gpu_hours);
}

const HOURS = ["gpu_hours", "core_hours", "memory_gib_hours", "ended"];

/** Sums up the rows of one user, group or queue, with their cost. */
function together(items, by, prices) {
  const rows = new Map();
  for (const item of items) {
    const row = rows.get(item[by]) ??
      { id: item[by] || "–", cost: 0, ...Object.fromEntries(HOURS.map((name) => [name, 0])) };
    for (const name of HOURS) row[name] += item[name];
    row.cost += prices ? cost(item, prices) : 0;
    rows.set(item[by], row);
  }
  return [...rows.values()].sort((a, b) => b.gpu_hours - a.gpu_hours || b.core_hours - a.core_hours);
}

function Usage() {
  const [period, set] = useState("week"), [by, setBy] = useState("user");
  const usage = useAnswer((signal) => get(query("/v1/usage", {
    by: [...new Set([by, "queue", "outcome"])].join(),
    from: new Date(Date.now() - PERIODS[period] * 1000).toISOString(),
  }), { signal }), [period, by], { every: 30000 });
  const list = useAnswer((signal) => get("/v1/prices", { signal }), []);
  const prices = list.data?.currency ? list.data : null;
  const rows = useMemo(() => together(usage.data?.items ?? [], by, prices), [usage.data, by, prices]);
  const most = Math.max(1e-9, ...rows.map((row) => row.gpu_hours));
  const all = rows.reduce((sum, row) => sum + row.cost, 0);
  return (
    <Card title={t("users.usage")} actions={
      <>
        <label>{t("users.by")} <select value={by} onChange={(e) => setBy(e.currentTarget.value)}>
          {["user", "group", "queue"].map((name) => <option value={name}>{t(`queue.${name}`)}</option>)}
        </select></label>
        <label>{t("users.period")} <select value={period} onChange={(e) => set(e.currentTarget.value)}>
          {Object.keys(PERIODS).map((name) => <option value={name}>{t(`users.${name}`)}</option>)}</select></label>
      </>}>
      <Waiting of={usage} />
      {usage.data && <Table caption={t("users.usage")} rows={rows} empty={t("users.usage.none")} columns={[
        { title: t(`queue.${by}`), of: (row) => row.id },
        { title: t("users.gpu_hours"), number: true, of: (row) => number(row.gpu_hours) },
        { title: "", class: "bars", of: (row) => <Bar whole={most} parts={[{ value: row.gpu_hours }]}
          label={percent(row.gpu_hours, usage.data.total.gpu_hours)} /> },
        { title: t("users.core_hours"), number: true, of: (row) => number(row.core_hours) },
        { title: t("users.memory_hours"), number: true, of: (row) => number(row.memory_gib_hours) },
        { title: t("users.ended"), number: true, of: (row) => row.ended },
        ...(prices ? [{ title: prices.currency, number: true, of: (row) => row.cost.toFixed(2) }] : []),
      ]} />}
      {prices && rows.length > 0 && <p data-bill>
        {t("users.bill", { amount: all.toFixed(2), currency: prices.currency })}{" "}
        <span class="faint">{t("users.bill.text")}</span></p>}
      {list.data && !prices && <p class="faint">{t("users.prices.none")}</p>}
    </Card>
  );
}

/** Shows the latest ended instances with what each held and for how long. */
function Records() {
  const [user, set] = useState("");
  const records = useAnswer((signal) => get(query("/v1/usage_records", { tail: 25, user }), { signal }), [user],
    { every: 30000 });
  const rows = [...(records.data?.items ?? [])].reverse();
  return (
    <Card title={t("users.records")}
      actions={<label>{t("queue.user")} <Entry value={user} size={12}
      onChange={(e) => set(e.currentTarget.value.trim())} /></label>}>
      <Waiting of={records} />
      {records.data && (
        <Table
          caption={t("users.records")}
          rows={rows}
          empty={t("users.usage.none")}
          columns={[
            { title: t("node.until"), class: "tight", of: (row) => <Time at={row.end} /> },
            { title: t("queue.user"), of: (row) => row.owner },
            { title: t("node.work"), of: (row) => `${row.name || row.kind} ${row.workload}/${row.ordinal}` },
            { title: t("node"), of: (row) => row.node },
            { title: t("users.held"), of: (row) => asked(row.resources) },
            { title: t("users.ran"), number: true, of: (row) => span(row.seconds) },
            { title: t("users.outcome"), of: (row) => t(`state.${row.outcome}`) },
          ]}
        />
      )}
    </Card>
  );
}

const Share = ({ of }) => (of ? <><small>{of.fair_share.toFixed(2)}</small><Bar whole={1}
  parts={[{ value: of.fair_share }]} label={t("users.share.label", { value: of.fair_share.toFixed(2) })} /></> : "–");

function People({ kind, editing, edit }) {
  const { who } = useSession();
  const list = useAnswer((signal) => getAll(`/v1/${kind}`, {}, { signal }), [kind],
    { every: 15000, on: [kind], rest: 300 });
  const edits = (object) => (kind === "users" ? may(who, "users", undefined, object.group) &&
    (who.permissions.users === "all" || object.group === who.group) : who.permissions.users === "all");
  const shares = useAnswer(
    (signal) => (kind === "users" ? get("/v1/shares", { signal }) : Promise.resolve({ items: [] })), [kind],
    { every: 30000 });
  const share = useMemo(() => new Map((shares.data?.items ?? []).map((row) => [row.user, row])), [shares.data]);
  const open = editing?.kind === kind && list.data?.items.find((o) => o.id === editing.id);
  return (
    <Card title={t(`users.${kind}`)}>
      <Waiting of={list} />
      {list.data && <Paged caption={t(`users.${kind}`)} rows={list.data.items} columns={[
        { title: t("users.name"),
          of: (o) => <>{o.id}{o.display && o.display !== o.id ? <span class="faint"> {o.display}</span> : null}
            {o.disabled ? <Disabled /> : null}</> },
        ...(kind === "users" ? [{ title: t("queue.group"), of: (o) => o.group ?? "–" },
          { title: t("users.role"), of: (o) => o.role ?? "user" }] : []),
        { title: t("users.weight"), number: true, of: (o) => o.weight ?? 1 },
        ...(kind === "users" ? [
          { title: t("users.used"), number: true,
            of: (o) => (share.has(o.id) ? number(share.get(o.id).used_hours) : "–") },
          { title: t("users.share"), class: "bars", of: (o) => <Share of={share.get(o.id)} /> },
        ] : []),
        { title: t("users.quota"), class: "bars", of: (o) => <Quota use={o.status?.use} /> },
        { title: "", of: (o) => edits(o) && <button type="button" onClick={() => edit({ kind, id: o.id })}>
          {t("users.change", { id: o.id })}</button> },
      ]} />}
      {kind === "users" && shares.data && <p class="faint">
        {t("users.share.text", { half: span(shares.data.half_life_s) })}</p>}
      <Dialog open={Boolean(open)} title={t("users.edit", { id: open?.id })} onClose={() => edit(null)}>
        {open && <Edit key={open.id} kind={kind} object={open} leave={() => edit(null)}
          done={() => { edit(null); list.again(); }} />}
      </Dialog>
    </Card>
  );
}

const Disabled = () => <span class="faint"> ({t("users.disabled")})</span>;

export function Users() {
  const [editing, edit] = useState(null);
  return (
    <Page title={t("page.users")}>
      <People kind="groups" editing={editing} edit={edit} />
      <People kind="users" editing={editing} edit={edit} />
      <Usage />
      <Records />
    </Page>
  );
}
