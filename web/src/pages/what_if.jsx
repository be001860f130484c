// what_if.jsx - two questions to the daemon's forecasts: another policy or other nodes beside what is now, and where a
// job would stand.

import { useMemo, useState } from "preact/hooks";
import { get, getAll, post, query } from "../data/api.js";
import { useAnswer, useCollection, useVerb } from "../data/hooks.js";
import { gpusOf, moment, resource, span } from "../data/amount.js";
import { Bar, Card, Entry, Field, Page, Table, Waiting } from "../parts/parts.jsx";
import { Form } from "../parts/form.jsx";
import { Forecast, jobFields, jobOf } from "./submit.jsx";
import { t } from "../text/text.js";

const SHOWN = 100;
const BUILT_IN = ["berth", "fifo", "priority", "multifactor", "fair-share", "drf", "sjf", "srsf", "las", "wfp3",
  "unicef"];

/** Shows the start of each job, now and then, in the order of then. */
function Sides({ then }) {
  const rows = then.items.filter((row) => row.id);
  const wait = (row, start) => (start ? row.waited_s + Math.max(0, (moment(start) - moment(then.forecast.at)) / 1000)
    : undefined);
  const was = (row) => wait(row, row.was_start), is = (row) => (row.now ? row.waited_s : wait(row, row.start));
  const most = Math.max(1, ...rows.flatMap((row) => [was(row) ?? 0, is(row) ?? 0]));
  const cell = (seconds) => (seconds === undefined ? t("queue.unknown")
    : <>{span(seconds)}<Bar whole={most} parts={[{ value: seconds }]} label={span(seconds)} /></>);
  const { of, now, then: other } = then.waits;
  return (
    <>
      {of > 0 && <p role="status">
        {t("whatif.mean", { count: of, now: span(now.mean_s), then: span(other.mean_s) })}{" "}
        {t("whatif.longest", { now: span(now.longest_s), then: span(other.longest_s) })}</p>}
      {then.nodes.removed.length > 0 && <p class="faint">
        {t("whatif.removed", { nodes: then.nodes.removed.join(", ") })}</p>}
      <Table caption={t("whatif.policy")} rows={rows} empty={t("queue.empty")} columns={[
        { title: t("queue.job"), of: (row) => `${row.name ?? row.kind} ${row.id}` },
        { title: t("queue.owner"), of: (row) => row.owner ?? "–" },
        { title: t("whatif.was"), number: true, of: (row) => row.was ?? "–" },
        { title: t("whatif.is"), number: true, of: (row) => (row.now ? t("whatif.starts") : row.position) },
        { title: t("whatif.wait.now"), class: "bars", of: (row) => cell(was(row)) },
        { title: t("whatif.wait.then"), class: "bars", of: (row) => cell(is(row)) },
      ]} />
    </>
  );
}

function Answer({ policy, nodes }) {
  const then = useAnswer((signal) => post(query("/v1/what_if", { limit: SHOWN }),
    { policy: policy || undefined, nodes }, { signal }),
    [policy, JSON.stringify(nodes)], { every: 10000 });
  return <><Waiting of={then} />{then.data && !then.error && <Sides then={then.data} />}</>;
}

/** Groups nodes of the same hardware. */
function kindsOf(nodes) {
  const kinds = new Map();
  for (const node of nodes.items.values()) {
    const gpus = gpusOf(node), model = [node.gpus ?? []].flat()[0]?.model ?? "GPU";
    const name = t("whatif.kind", {
      gpus: gpus ? `${gpus} × ${model}, ` : "", cpu: resource("cpu", node.allocatable?.cpu),
      memory: resource("memory", node.allocatable?.memory),
    });
    const kind = kinds.get(name) ?? { name, like: node.id, count: 0 };
    kinds.set(name, { ...kind, count: kind.count + 1 });
  }
  return [...kinds.values()].sort((a, b) => b.count - a.count);
}

function Other() {
  const [policy, choose] = useState("fifo"), [like, setLike] = useState(""), [label, setLabel] = useState(""),
    [count, setCount] = useState("");
  const made = useAnswer((signal) => getAll("/v1/policies", {}, { signal }), []);
  const all = useCollection("nodes"),
    kinds = useMemo(() => kindsOf(all), [all.version]);
  const names = [...BUILT_IN, ...(made.data?.items ?? []).map((p) => p.id)];
  const much = Number(count) || 0,
    kind = like || kinds[0]?.like;
  const odd = count !== "" && !Number.isInteger(Number(count)) ? t("whatif.count.odd") : undefined;
  const nodes = much && !odd && (label || kind) ? [{ ...(label ? { label } : { like: kind }), count: much }] : [];
  return (
    <Card title={t("whatif.policy")}>
      <p class="faint">{t("whatif.text")}</p>
      <form class="fields" aria-label={t("whatif.policy")} onSubmit={(e) => e.preventDefault()}>
        <Field label={t("whatif.choose")}>
          {(props) => <select {...props} value={policy} onChange={(e) => choose(e.currentTarget.value)}>
            <option value="">{t("whatif.same")}</option>{names.map((name) => <option value={name}>{name}</option>)}
          </select>}
        </Field>
        <Field label={t("whatif.count")} error={odd}>
          {(props) => <Entry {...props} value={count} size={6} inputMode="numeric" placeholder="+4"
            onChange={(e) => setCount(e.currentTarget.value.trim().replace("−", "-"))} />}
        </Field>
        <Field label={t("whatif.like")}>
          {(props) => <select {...props} value={kind} disabled={label !== ""}
            onChange={(e) => setLike(e.currentTarget.value)}>
            {kinds.map((k) => <option value={k.like}>{k.name} ({k.count})</option>)}</select>}
        </Field>
        <Field label={t("whatif.label")}>
          {(props) => <Entry {...props} value={label} size={14} placeholder="rack=r3" spellcheck={false}
            onChange={(e) => setLabel(e.currentTarget.value.trim())} />}
        </Field>
      </form>
      {policy || nodes.length ? <Answer policy={policy} nodes={nodes} /> : <p class="faint">{t("whatif.none")}</p>}
    </Card>
  );
}

function Draft() {
  const [forecast, set] = useState(null);
  const verb = useVerb((values) => post("/v1/jobs?dry_run=true&forecast=1", jobOf(values)),
    (answer) => set(answer.answer.forecast));
  return (
    <Card title={t("whatif.job")}>
      <p class="faint">{t("whatif.job.text")}</p>
      <Form label={t("whatif.job")} fields={jobFields()} initial={{ command: "true" }} verb={verb}
        submit={t("submit.look")} />
      {!verb.error && <Forecast of={forecast} />}
    </Card>
  );
}

export function WhatIf() {
  return (
    <Page title={t("page.what-if")}>
      <Draft />
      <Other />
    </Page>
  );
}
