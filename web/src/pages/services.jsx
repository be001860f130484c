// services.jsx - apps with their ready replicas, and a form to add one.

import { useState } from "preact/hooks";
import { getAll } from "../data/api.js";
import { useAnswer, usePostOnce, useVerb } from "../data/hooks.js";
import { may, useSession } from "../data/session.js";
import { go } from "../route.js";
import { shownState } from "../data/outcome.js";
import { Bar, Card, Link, Page, Paged, State, Time, Waiting } from "../parts/parts.jsx";
import { Form, numeric, words } from "../parts/form.jsx";
import { t } from "../text/text.js";

const fields = () => [
  { name: "name", label: t("jobs.name") },
  { name: "command", label: t("submit.command"), size: 36 },
  { name: "image", label: t("submit.image"), size: 24 },
  { name: "replicas", label: t("service.replicas"), size: 6 },
  { name: "cpu", label: t("submit.cpu"), of: "requests.cpu", size: 6 },
  { name: "memory", label: t("submit.memory"), of: "requests.memory", size: 8 },
  { name: "endpoint", label: t("service.endpoint"), of: "endpoints", size: 10, hint: t("service.endpoint.hint") },
];

function appOf(values) {
  const app = { name: (values.name ?? "").trim() };
  const requests = {};
  if (values.command) app.command = words(values.command);
  if (values.image) app.image = values.image.trim();
  if (values.replicas) app.replicas = numeric(values.replicas);
  for (const name of ["cpu", "memory"]) if (values[name]) requests[name] = numeric(values[name]);
  if (Object.keys(requests).length) app.requests = requests;
  if (values.endpoint) app.endpoints = [{ name: values.endpoint.trim(), protocol: "tcp" }];
  return app;
}

export function Services() {
  const { who } = useSession();
  const [adding, add] = useState(false);
  const apps = useAnswer((signal) => getAll("/v1/apps", {}, { signal }), [],
    { every: 15000, on: ["apps", "instances"], rest: 400 });
  const send = usePostOnce("/v1/apps");
  const verb = useVerb(
    (values) => send(appOf(values)),
    (answer) => go(`/services/${answer.id}`),
  );
  return (
    <Page title={t("page.services")} actions={may(who, "submit") && (
      <button type="button" class="main" aria-expanded={adding} onClick={() => add(!adding)}>
        {t("service.add")}</button>)}>
      {adding && <Card title={t("service.add")}><Form label={t("service.add")} fields={fields()} verb={verb}
        submit={t("service.add")} /></Card>}
      <Card label={t("page.services")}>
        <Waiting of={apps} />
        {apps.data && <Paged caption={t("page.services")} empty={t("service.none")} rows={apps.data.items} columns={[
          { title: t("jobs.name"), of: (app) => <Link to={`/services/${app.id}`}>{app.id}</Link> },
          { title: t("queue.owner"), of: (app) => app.owner },
          { title: t("jobs.state"), of: (app) => <State state={shownState(app)} /> },
          { title: t("service.ready"), number: true, of: (app) => `${app.status.ready}/${app.status.replicas}` },
          { title: "", class: "bars", of: (app) => <Bar whole={app.status.replicas}
            parts={[{ value: app.status.ready }]} label={`${app.status.ready}/${app.status.replicas}`} /> },
          { title: t("jobs.created"), class: "tight", of: (app) => <Time at={app.created} /> },
          { title: t("queue.why"), class: "words",
            of: (app) => app.error ?? app.status.conditions?.find((c) => !c.status)?.message ?? "" },
        ]} />}
      </Card>
    </Page>
  );
}
