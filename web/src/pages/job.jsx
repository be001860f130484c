// job.jsx - one job: its state and the reason, its tasks, their output and usage, and its verbs.

import { useState } from "preact/hooks";
import { get, post } from "../data/api.js";
import { useAnswer, useThose, useVerb } from "../data/hooks.js";
import { may, useSession } from "../data/session.js";
import { asked, moment, percent, span } from "../data/amount.js";
import { shownState } from "../data/outcome.js";
import { Bar, Button, Card, Confirm, Facts, Link, Page, State, Table, Time, Trouble,
  Waiting } from "../parts/parts.jsx";
import { FactorBar, FactorLegend, partsOf } from "../parts/factors.jsx";
import { Log } from "../parts/log.jsx";
import { Shell } from "../parts/shell.jsx";
import { Usage } from "../parts/usage.jsx";
import { t, when } from "../text/text.js";

const OVER = new Set(["ended", "failed"]);

function Actions({ job, again }) {
  const { who } = useSession();
  const [asking, ask] = useState("");
  const verb = useVerb((name) => post(`/v1/jobs/${job.id}/${name}`), again);
  const state = job.status.state;
  if (!may(who, "manage", job.owner, job.status.group)) return <span class="faint">{t("job.look.only")}</span>;
  const run = (name) => {
    ask("");
    verb.run(name);
  };
  return (
    <>
      {state === "held" && <Button verb={verb} onClick={() => run("release")}>{t("job.release")}</Button>}
      {(state === "pending" || state === "waiting") && <Button verb={verb} onClick={() => run("hold")}>
        {t("job.hold")}</Button>}
      <Button verb={verb} onClick={() => (OVER.has(state) ? run("requeue") : ask("requeue"))}>
        {t("job.requeue")}</Button>
      {!OVER.has(state) && <Button verb={verb} kind="danger" onClick={() => ask("cancel")}>{t("job.cancel")}</Button>}
      <Trouble error={verb.error} />
      <Confirm open={asking !== ""} title={t(`job.${asking || "cancel"}.title`, { id: job.id })}
        text={t(`job.${asking || "cancel"}.text`, { id: job.id })}
        yes={t(`job.${asking || "cancel"}.yes`)} no={t(`job.${asking || "cancel"}.no`)} onYes={() => run(asking)}
        onNo={() => ask("")} />
    </>
  );
}

function Steps({ job, why }) {
  const rows = [
    [job.created, t("step.created", { owner: job.owner })],
    [job.started, t("step.started")],
    ...(job.status.last ?? []).map((end) => [end.since, t("step.task", {
      ordinal: end.ordinal, node: end.node, state: t(`state.${end.outcome || end.state}`),
      exit: end.exit ?? end.error ?? "",
    })]),
    [job.finished, <><State state={shownState(job)} /> {job.error ?? ""}</>],
    [!job.started && why?.start, t("step.expected")],
    [!job.finished && why?.end, t("step.end")],
  ].filter(([at]) => at);
  rows.sort(([a], [b]) => moment(a) - moment(b));
  return (
    <>
      <ol class="steps">{rows.map(([at, text]) => <li><Time at={at} /><span>{text}</span></li>)}</ol>
      {job.started && <p class="faint">
        {t("job.ran", {
          waited: span((moment(job.started) - moment(job.created)) / 1000),
          ran: span(((job.finished ? moment(job.finished) : Date.now()) - moment(job.started)) / 1000),
        })}</p>}
    </>
  );
}

/**
 * What would let it start sooner takes a plan for each way: it is asked when the job has changed, and when somebody
 * wants it anew.
 */
function Sooner({ id, when: changed }) {
  const sooner = useAnswer((signal) => get(`/v1/jobs/${encodeURIComponent(id)}/why?suggest=1`, { signal }), [id],
    { when: changed });
  const ways = sooner.data?.sooner ?? [];
  return (
    <>
      <h3>{t("job.sooner")}</h3>
      <Waiting of={sooner} />
      {sooner.data && (ways.length ? <ul>{ways.map((way) => (
        <li>{way.change}{way.starts ? ` (${way.starts}/${way.waiting})` : ""}
          : {way.now ? t("forecast.now") : when(way.start)}</li>
      ))}</ul> : <p class="faint">{t("job.sooner.none")}</p>)}
      {sooner.data && <button type="button" onClick={sooner.again}>{t("job.sooner.again")}</button>}
    </>
  );
}

function Why({ why, changed }) {
  if (!why)
    return (
      <p class="faint" role="status">
        {t("loading")}
      </p>
    );
  const standing = why.standing;
  return (
    <>
      <pre class="why">{(why.lines ?? []).join("\n")}</pre>
      {standing && (
        <>
          <p>
            {t("job.standing", {
              position: standing.position, of: standing.of, tier: t(`tier.${standing.tier}`),
              ranking: standing.ranking,
            })}{" "}
            {why.start ? t("job.start", { at: (why.start_guess ? "~ " : "") + when(why.start) }) : ""}
            {why.start_guess ? ` ${t("guess")}` : ""}
          </p>
          <FactorBar factors={partsOf(standing)} />
          <FactorLegend lists={[partsOf(standing)]} />
        </>
      )}
      {why.blockers?.length > 0 && (
        <>
          <h3>{t("job.blockers")}</h3>
          <ul>{why.blockers.map((b) => (
            <li>{b.owner ?? b.group ?? t("cluster.somebody")} · {b.node} {(b.devices ?? []).join(", ")}{" "}
              {b.until ? t("until", { at: (b.until_guess ? "~ " : "") + when(b.until) }) : ""}</li>
          ))}</ul>
        </>
      )}
      {standing && <Sooner id={why.id} when={changed} />}
    </>
  );
}

function Tasks({ job, chosen, choose }) {
  const rows = job.status.instances ?? [];
  return (
    <Table caption={t("job.tasks")} rows={rows} selected={chosen} empty={t("job.tasks.none")} columns={[
      { title: t("job.ordinal"), number: true, of: (row) => row.ordinal },
      { title: t("node"), of: (row) => <Link to={`/nodes/${row.node}`}>{row.node}</Link> },
      { title: t("jobs.state"), of: (row) => <State state={row.outcome || row.state} /> },
      { title: t("jobs.progress"), class: "bars",
        of: (row) => (row.progress === undefined ? "" :
        <Bar whole={1000} parts={[{ value: row.progress }]} label={percent(row.progress, 1000)} />) },
      { title: "", of: (row) => <button type="button" aria-pressed={chosen === row.id} onClick={() => choose(row.id)}>
        {t("job.look", { ordinal: row.ordinal })}</button> },
    ]} />
  );
}

function Task({ job, chosen, over }) {
  const { who } = useSession();
  const label = t("job.log", { ordinal: chosen.ordinal });
  return (
    <>
      <Card title={label}>
        <Log of={chosen} label={label} />
      </Card>
      {!over && chosen.state === "running" && may(who, "manage", job.owner, job.status.group) && (
        <Card title={t("shell.title")}>
          <Shell key={chosen.id} instance={chosen.id} />
        </Card>
      )}
      {!over && chosen.id && <Usage instance={chosen.id} work={job} />}
    </>
  );
}

function Shown({ job: d, error, again }) {
  const [picked, choose] = useState(null);
  const changed = `${d.status.state} ${d.generation}`, over = OVER.has(d.status.state);
  const why = useAnswer((signal) => get(`/v1/jobs/${encodeURIComponent(d.id)}/why`, { signal }), [d.id],
    { every: over ? 0 : 30000, when: changed });
  const instances = d.status.instances ?? [];
  const chosen = instances.find((row) => row.id === picked) ?? instances[0] ?? d.status.last?.[0];
  return (
    <Page title={t("job.title", { id: `${d.id} ${d.name ?? ""}` })} actions={<Actions job={d} again={again} />}>
      <Trouble error={error} />
      <div class="cards">
        <Card title={t("job.about")}>
          <Facts rows={[
            [t("jobs.state"), <State state={shownState(d)} />], [t("queue.owner"), d.owner],
            [t("queue.queue"), d.queue ?? "default"],
            [t("job.command"), <code>{(d.command ?? []).join(" ")}</code>], [t("submit.image"), d.image],
            [t("queue.asked"), asked(why.data?.asked) || "–"], [t("submit.limit"), d.time_limit],
            [t("jobs.progress"), d.status.progress === undefined ? undefined
              : `${percent(d.status.progress, 1000)} ${d.status.note ?? ""}`],
            [t("job.predicted"), d.status.predicted && span(d.status.predicted.seconds)],
          ]} />
        </Card>
        <Card title={t("job.line")}><Steps job={d} why={why.data} /></Card>
        <Card title={t("job.why")}>
          {why.error ? <Trouble error={why.error} /> : <Why why={why.data} changed={changed} />}
        </Card>
      </div>
      <Card title={t("job.tasks")}>
        <Tasks job={d} chosen={chosen?.id} choose={choose} />
      </Card>
      {chosen && <Task job={d} chosen={chosen} over={over} />}
    </Page>
  );
}

export function Job({ id }) {
  const [only, know] = useThose((instance) => String(instance.workload) === String(id));
  const job = useAnswer((signal) => get(`/v1/jobs/${encodeURIComponent(id)}`, { signal }), [id],
    { every: 10000, on: ["instances"], rest: 150, only });
  if (!job.data) return <Page title={t("job.title", { id })}><Waiting of={job} /></Page>;
  know((job.data.status.instances ?? []).map((row) => row.id));
  return <Shown job={job.data} error={job.error} again={job.again} />;
}
