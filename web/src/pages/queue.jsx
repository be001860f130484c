// queue.jsx - waiting work in the order of the queue, with the factors of that order; below it the plan ahead.

import { useMemo, useState } from "preact/hooks";
import { get, query as queried } from "../data/api.js";
import { useAnswer, useNow } from "../data/hooks.js";
import { asked, moment, span } from "../data/amount.js";
import { filter } from "../route.js";
import { Card, Entry, Field, Link, Page, Table, Time, Trouble, Waiting } from "../parts/parts.jsx";
import { FactorBar, FactorLegend, largest, partsOf } from "../parts/factors.jsx";
import { Gantt } from "../parts/gantt.jsx";
import { t } from "../text/text.js";

const SHOWN = 200,
  PLAN_ROWS = 30,
  PLAN_NODES = 200;

/**
 * The factors of each row that the caller may see, by the policy of its queue. They are many bytes: asked for less
 * often than the rows.
 */
function useFactors(query, wanted) {
  const answer = useAnswer(
    (signal) => (wanted ? get(queried("/v1/queue",
      { limit: SHOWN, queue: query.queue, user: query.user, factors: true }), { signal }) : Promise.resolve(null)),
    [wanted, query.queue, query.user], { every: 30000 });
  const byId = useMemo(() =>
    new Map((answer.data?.items ?? []).filter((row) => row.id).map((row) => [row.id, partsOf(row)])), [answer.data]);
  return { byId, error: answer.error };
}

function Filters({ query }) {
  const change = (name) => (event) => filter("/queue", { ...query, [name]: event.currentTarget.value.trim() });
  const field = (name) => (
    <Field label={t(`queue.${name}`)}>
      {(props) => <Entry {...props} value={query[name] ?? ""} onChange={change(name)} size={12} />}</Field>
  );
  return (
    <form class="fields" onSubmit={(e) => e.preventDefault()} aria-label={t("queue.filters")}>
      {field("user")}
      {field("group")}
      {field("queue")}
      <Field label={t("queue.tier")}>
        {(props) => (
          <select {...props} value={query.tier ?? ""} onChange={change("tier")}>
            <option value="">{t("all")}</option>
            {["by-right", "borrowed", "spare"].map((tier) => (
              <option value={tier}>{t(`tier.${tier}`)}</option>
            ))}
          </select>
        )}
      </Field>
    </form>
  );
}

const passes = (row, query) => (!query.group || row.group === query.group) && (!query.tier || row.tier === query.tier);
const named = (row) =>
  row.id ? `${row.name ?? row.kind} ${row.id}` : (row.owner ?? row.group ?? t("cluster.somebody"));

/** Returns the rows of the plan. A row that starts before an earlier row is backfilled: it delays no other. `left` rows
 * did not fit. */
function planRows(items, running, now) {
  const rows = [];
  const works = new Map();
  for (const holder of running) {
    const end = moment(holder.until),
      key = holder.workload ?? `${holder.node} ${holder.since}`;
    if (end > now && end > (works.get(key)?.end ?? 0))
      works.set(key, {
        id: key, kind: "runs", start: now, end,
        label: holder.workload ? `${holder.name ?? holder.kind} ${holder.workload}`
          : holder.owner ?? holder.group ?? t("cluster.somebody"),
        href: holder.kind === "job" ? `#/jobs/${holder.workload}` : undefined,
      });
  }
  rows.push(...[...works.values()].sort((a, b) => a.end - b.end).slice(0, PLAN_ROWS / 2));
  let latest = 0,
    left = works.size - rows.length;
  for (const item of items) {
    const start = moment(item.start),
      end = moment(item.end);
    if (!(start >= 0)) continue;
    if (rows.length < PLAN_ROWS)
      rows.push({
        id: `q${item.position}`, kind: start < latest ? "fills" : "next", start,
        end: end > start ? end : start + 3600e3, label: named(item),
        href: item.id && item.kind === "job" ? `#/jobs/${item.id}` : undefined,
      });
    else left++;
    latest = Math.max(latest, start);
  }
  return Object.assign(rows, { left });
}

function columns(factors, whole, showFactors, now) {
  return [
    { title: t("queue.position"), number: true, of: (row) => row.position },
    { title: t("queue.job"),
      of: (row) => (row.id && row.kind === "job" ? <Link to={`/jobs/${row.id}`}>{named(row)}</Link>
        : row.id ? named(row) : t("queue.hidden")) },
    { title: t("queue.owner"),
      of: (row) => [row.owner, row.group && `(${row.group})`].filter(Boolean).join(" ") || "–" },
    { title: t("queue.queue"), of: (row) => row.queue },
    { title: t("queue.asked"), class: "words", of: (row) => asked(row.asked) || "–" },
    { title: t("queue.tier"), class: "tight", of: (row) => t(`tier.${row.tier}`) },
    { title: t("queue.waited"), class: "tight", of: (row) => span(row.waited_s) },
    { title: t("queue.start"), class: "tight",
      of: (row) => (row.start ? <><Time at={row.start} guess={row.start_guess} /> <span class="faint">
      {t("in", { span: span((moment(row.start) - now) / 1000) })}</span></> : t("queue.unknown")) },
    ...(showFactors ? [{ title: t("queue.factors"), class: "bars",
      of: (row) => (factors.has(row.id) ? <FactorBar factors={factors.get(row.id)} whole={whole} /> : "–") }] : []),
    { title: t("queue.why"), class: "words", of: (row) => row.text ?? "" },
  ];
}

export function Queue({ query }) {
  const [withFactors, show] = useState(true);
  const now = useNow(5000);
  const queue = useAnswer((signal) => get(queried("/v1/queue", { limit: SHOWN, queue: query.queue, user: query.user }),
    { signal }),
    [query.queue, query.user], { every: 5000, on: ["jobs"], rest: 500 });
  const running = useAnswer((signal) => get(queried("/v1/holders", { all: true, limit: PLAN_NODES }), { signal }), [],
    { every: 10000 });
  const items = (queue.data?.items ?? []).filter((row) => passes(row, query));
  const factors = useFactors(query, withFactors);
  const lists = items.map((row) => factors.byId.get(row.id) ?? []);
  const plan = planRows(items, running.data?.items ?? [], now);
  return (
    <Page title={t("page.queue")} actions={
      <button type="button" aria-pressed={withFactors} onClick={() => show(!withFactors)}>
        {t("queue.factors")}</button>}>
      <Card title={queue.data ? t("queue.count", { count: queue.data.total }) : t("page.queue")}>
        <Filters query={query} />
        <Waiting of={queue} />
        <Trouble error={factors.error} />
        {queue.data && (
          <Table
            bound
            caption={t("page.queue")}
            empty={t("queue.empty")}
            rows={items}
            columns={columns(factors.byId, largest(lists), withFactors, now)}
          />
        )}
        {withFactors && <FactorLegend lists={lists} />}
        {queue.data && queue.data.total > SHOWN && <p class="faint">
          {t("queue.first", { count: SHOWN, all: queue.data.total })}</p>}
        {queue.data?.forecast && <p class="faint">
          {t("queue.forecast", { revision: queue.data.forecast.revision })} <Time at={queue.data.forecast.at} /></p>}
      </Card>
      <Card title={t("queue.plan")}>
        {plan.length ? <Gantt rows={plan} now={now} label={t("queue.plan")} />
          : <p class="faint">{t("queue.plan.empty")}</p>}
        {running.data?.continue !== undefined && <p class="faint">
          {t("queue.plan.nodes", { node: running.data.continue })}</p>}
        {plan.left > 0 && <p class="faint">
          {t("queue.plan.first", {
            count: plan.length, all: plan.length + plan.left, runs: plan.filter((row) => row.kind === "runs").length,
          })}</p>}
      </Card>
    </Page>
  );
}
