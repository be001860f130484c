// journal.jsx - what happened lately, and who changed what: searched by who, subject and record; a record with all it
// says, and a decision made again.

import { useEffect, useRef, useState } from "preact/hooks";
import { get, post, query as queried } from "../data/api.js";
import { useAnswer, useVerb } from "../data/hooks.js";
import { may, useSession } from "../data/session.js";
import { filter } from "../route.js";
import { Button, Card, Entry, Facts, Field, Link, Page, Table, Time, Trouble, Waiting } from "../parts/parts.jsx";
import { t } from "../text/text.js";

const SHOWN = 50;

function Subject({ kind, id }) {
  if (kind === "job" || kind === "jobs") return <Link to={`/jobs/${id}`}>{`job ${id}`}</Link>;
  if (kind === "node" || kind === "nodes") return <Link to={`/nodes/${id}`}>{`node ${id}`}</Link>;
  if (kind === "app" || kind === "apps") return <Link to={`/services/${id}`}>{id}</Link>;
  return (
    <>
      {kind} {id}
    </>
  );
}

function Events() {
  const events = useAnswer((signal) => get(`/v1/events?limit=${SHOWN}`, { signal }), [],
    { every: 5000, on: ["instances"], rest: 1000 });
  const rows = [...(events.data?.items ?? [])].reverse().map((row, i) => ({ ...row, subject: row.id, id: i }));
  return (
    <Card title={t("journal.events")}>
      <Waiting of={events} />
      {events.data && (
        <Table
          caption={t("journal.events")}
          rows={rows}
          columns={[
            { title: t("journal.at"), class: "tight", of: (row) => <Time at={row.last} /> },
            { title: t("journal.type"), of: (row) => row.type },
            { title: t("journal.subject"), class: "tight", of: (row) => <Subject kind={row.kind} id={row.subject} /> },
            { title: t("journal.message"), of: (row) => row.message },
            { title: t("journal.times"), number: true, of: (row) => row.count },
          ]}
        />
      )}
    </Card>
  );
}

const actionColumns = () => [
  { title: t("journal.op"), of: ([op]) => t(`op.${op}`) },
  { title: t("node.work"), of: ([, workload, ordinal]) => `${workload}/${ordinal}` },
  { title: t("node"), of: ([, , , node]) => node || "–" },
  { title: t("journal.cause"), of: ([, , , , , cause]) => cause ?? "–" },
  { title: t("journal.score"), number: true, of: ([, , , , , , score]) => score ?? "–" },
];

/** Shows some actions of a plan: [op, workload, ordinal, node, instance, cause, score, rival]. */
const Actions = ({ of, caption }) => <Table caption={caption} rows={of} empty={t("journal.actions.none")}
  columns={actionColumns()} />;

/** Shows the result of a replayed decision. */
function Outcome({ of }) {
  if (of.same) return <p role="status"><strong>{t("journal.same")}</strong> <span class="faint">
    {t("journal.replayed", { changes: of.changes, seconds: of.seconds.toFixed(1) })}</span></p>;
  return (
    <div role="status">
      {of.differences.map((d) => (
        <>
          <p class="trouble">
            {t(`journal.differs.${d.what}`, { recorded: d.recorded, replayed: d.replayed })}{" "}
            {d.input || t("journal.differs.build")}
          </p>
          {d.only_recorded?.length > 0 && <><h3>{t("journal.only.recorded")}</h3>
            <Actions of={d.only_recorded} caption={t("journal.only.recorded")} /></>}
          {d.only_replayed?.length > 0 && <><h3>{t("journal.only.replayed")}</h3>
            <Actions of={d.only_replayed} caption={t("journal.only.replayed")} /></>}
        </>
      ))}
    </div>
  );
}

/** Shows a decision: its inputs, its actions, why other work waits; with a replay. */
function Decision({ record }) {
  const { cycle } = record,
    [outcome, set] = useState(null);
  const verb = useVerb(() => post(`/v1/audit/${record.seq}/replay`), set);
  return (
    <>
      <Facts rows={[
        [t("journal.cycle"), t("journal.unit", { n: cycle.n, unit: cycle.unit, of: cycle.of })],
        [t("journal.from.revision"), cycle.revision],
        [t("journal.profile"), cycle.profile], [t("journal.hashes"), `${cycle.state} / ${cycle.plan}`],
      ]} />
      <div class="actions">
        <Button
          verb={verb}
          onClick={() => {
            set(null);
            verb.run();
          }}
        >
          {t("journal.replay")}
        </Button>
        {verb.busy && (
          <span class="faint" role="status">
            {t("journal.replaying")}
          </span>
        )}
        <Trouble error={verb.error} />
      </div>
      {outcome && !verb.error && <Outcome of={outcome} />}
      <h3>{t("journal.actions")}</h3>
      <Actions of={cycle.actions ?? []} caption={t("journal.actions")} />
      {cycle.pending?.length > 0 && (
        <>
          <h3>{t("journal.pending")}</h3>
          <Table caption={t("journal.pending")} rows={cycle.pending} columns={[
            { title: t("node.work"), of: ([workload, pods]) => `${workload} × ${pods}` },
            { title: t("queue.why"),
              of: ([, , reasons]) => (reasons ?? [])
              .map(([reason, what, nodes]) => `${reason}${what ? ` ${what}` : ""}: ${nodes}`).join(", ") },
          ]} />
        </>
      )}
    </>
  );
}

/** Shows a whole record, and for a decision its description. */
function Record({ seq }) {
  const record = useAnswer((signal) => get(`/v1/audit/${seq}`, { signal }), [seq]),
    box = useRef(null);
  useEffect(() => {
    if (record.data) box.current.scrollIntoView({ block: "start" });
  }, [record.data?.seq]); // the list above is long
  return (
    <section ref={box} aria-label={t("journal.record", { seq })}>
      <h3>{t("journal.record", { seq })}</h3>
      <Waiting of={record} />
      {record.data?.cycle && <Decision key={seq} record={record.data} />}
      {record.data && <details open={!record.data.cycle}><summary>{t("journal.raw")}</summary>
        <pre class="log" tabIndex={0}>{JSON.stringify(record.data, null, 2)}</pre></details>}
    </section>
  );
}

function Audit({ query }) {
  const [open, setOpen] = useState(null);
  const change = (name) => (e) => filter("/journal", { ...query, [name]: e.currentTarget.value.trim() });
  const audit = useAnswer(
    (signal) => get(queried("/v1/audit",
    { limit: SHOWN, who: query.who, subject: query.subject, from: query.from, all: query.all }), { signal }),
    [query.who, query.subject, query.from, query.all], { every: 10000, on: ["jobs"], rest: 1000 });
  const rows = [...(audit.data?.items ?? [])].reverse().map((row) => ({ ...row, id: row.seq }));
  return (
    <Card title={t("journal.audit")}>
      <form class="fields" aria-label={t("queue.filters")} onSubmit={(e) => e.preventDefault()}>
        {["who", "subject", "from"].map((name) => (
          <Field label={t(`journal.${name}`)}>
            {(props) => <Entry {...props} value={query[name] ?? ""} onChange={change(name)} size={14} />}</Field>
        ))}
        <Field label={t("journal.decisions")}>
          {(props) => <select {...props} value={query.all ?? ""} onChange={change("all")}>
            <option value="">{t("not")}</option><option value="true">{t("yes")}</option></select>}
        </Field>
      </form>
      <Waiting of={audit} />
      {audit.data && <Table caption={t("journal.audit")} rows={rows} selected={open} columns={[
        { title: t("journal.revision"), number: true, of: (row) => row.revision },
        { title: t("journal.at"), class: "tight", of: (row) => <Time at={row.at} /> },
        { title: t("journal.who"), of: (row) => row.who },
        { title: t("journal.verb"), of: (row) => (row.decision ? t("journal.decision") : row.kind) },
        { title: t("journal.subject"), of: (row) => row.subject },
        { title: "", of: (row) => <button type="button" aria-pressed={open === row.id}
          onClick={() => setOpen(open === row.id ? null : row.id)}>{t("journal.open", { seq: row.seq })}</button> },
      ]} />}
      {open !== null && <Record seq={open} />}
    </Card>
  );
}

export function Journal({ query }) {
  const { who } = useSession();
  return (
    <Page title={t("page.journal")}>
      {may(who, "audit") ? <Audit query={query} /> : <p class="faint">{t("journal.not")}</p>}
      <Events />
    </Page>
  );
}
