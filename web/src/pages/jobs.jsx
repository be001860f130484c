// jobs.jsx - jobs by owner, group and state, the newest first; and a form to submit one.

import { useState } from "preact/hooks";
import { get, query as queried } from "../data/api.js";
import { useAnswer } from "../data/hooks.js";
import { may, useSession } from "../data/session.js";
import { percent } from "../data/amount.js";
import { OUTCOMES, shownState } from "../data/outcome.js";
import { filter } from "../route.js";
import { Card, Entry, Field, Link, Page, State, Table, Time, Waiting } from "../parts/parts.jsx";
import { Submit } from "./submit.jsx";
import { t } from "../text/text.js";

const SHOWN = 100;
const STATES = ["pending", "waiting", "held", "starting", "running", "partial", "backing-off", "stopping", ...OUTCOMES];

function Filters({ query }) {
  const change = (name) => (event) => filter("/jobs",
    { ...query, after: "", [name]: event.currentTarget.value.trim() });
  return (
    <form class="fields" onSubmit={(e) => e.preventDefault()} aria-label={t("queue.filters")}>
      <Field label={t("queue.user")}>
        {(props) => <Entry {...props} value={query.owner ?? ""} onChange={change("owner")} size={12} />}</Field>
      <Field label={t("queue.group")}>
        {(props) => <Entry {...props} value={query.group ?? ""} onChange={change("group")} size={12} />}</Field>
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
      <Field label={t("jobs.find")}>
        {(props) => <input {...props} size={8} inputMode="numeric" onChange={(e) => {
          if (e.currentTarget.value.trim()) location.hash = `/jobs/${e.currentTarget.value.trim()}`;
        }} />}
      </Field>
    </form>
  );
}

const columns = () => [
  { title: t("jobs.id"), number: true, of: (job) => <Link to={`/jobs/${job.id}`}>{job.id}</Link> },
  { title: t("jobs.name"), of: (job) => job.name ?? "–" },
  { title: t("queue.owner"), of: (job) => job.owner },
  { title: t("queue.queue"), of: (job) => job.queue ?? "default" },
  { title: t("jobs.state"), of: (job) => <State state={shownState(job)} /> },
  { title: t("jobs.tasks"), number: true,
    of: (job) => `${job.status.running + job.status.ended}/${job.status.replicas}` },
  { title: t("jobs.progress"), number: true,
    of: (job) => (job.status.progress === undefined ? "" : percent(job.status.progress, 1000)) },
  { title: t("jobs.created"), class: "tight", of: (job) => <Time at={job.created} /> },
  { title: t("queue.why"), class: "words",
    of: (job) => job.error ?? job.status.conditions?.find((c) => !c.status)?.message ?? "" },
];

export function Jobs({ query }) {
  const { who } = useSession();
  const [submitting, submit] = useState(false);
  const jobs = useAnswer(
    (signal) => get(queried("/v1/jobs",
      { limit: SHOWN, order: "desc", owner: query.owner, group: query.group, state: query.state, after: query.after }),
      { signal }),
    [query.owner, query.group, query.state, query.after], { every: 15000, on: ["jobs", "instances"], rest: 700 });
  return (
    <Page title={t("page.jobs")} actions={may(who, "submit") && (
      <button type="button" class="main" aria-expanded={submitting} onClick={() => submit(!submitting)}>
        {t("submit.title")}</button>)}>
      {submitting && <Submit onDone={() => submit(false)} />}
      <Card label={t("page.jobs")}>
        <Filters query={query} />
        <Waiting of={jobs} />
        {jobs.data && <Table caption={t("page.jobs")} rows={jobs.data.items} columns={columns()}
          empty={t("jobs.empty")} />}
        <div class="actions">
          {query.after && <button type="button" onClick={() => filter("/jobs", { ...query, after: "" })}>
            {t("first")}</button>}
          {jobs.data?.continue !== undefined && (
            <button type="button" onClick={() => filter("/jobs", { ...query, after: jobs.data.continue })}>
              {t("next")}</button>)}
        </div>
      </Card>
    </Page>
  );
}
