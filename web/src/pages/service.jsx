// service.jsx - one app: replicas, endpoints with their weights, moves; start, stop, scale, settings.

import { useState } from "preact/hooks";
import { get, patch, post } from "../data/api.js";
import { useAnswer, useThose, useVerb } from "../data/hooks.js";
import { may, useSession } from "../data/session.js";
import { percent } from "../data/amount.js";
import { shownState } from "../data/outcome.js";
import { Bar, Button, Card, Confirm, Facts, Field, Link, Page, State, Table, Trouble,
  Waiting } from "../parts/parts.jsx";
import { Form, numeric } from "../parts/form.jsx";
import { Log } from "../parts/log.jsx";
import { t } from "../text/text.js";

function Actions({ app, again }) {
  const [asking, ask] = useState(false);
  const verb = useVerb((name) => post(`/v1/apps/${app.id}/${name}`), again);
  const stopped = app.stopped || app.status.state === "ended" || app.status.state === "failed";
  return (
    <>
      {stopped ? (
        <Button verb={verb} onClick={() => verb.run("start")}>
          {t("service.start")}
        </Button>
      ) : (
        <Button verb={verb} kind="danger" onClick={() => ask(true)}>
          {t("service.stop")}
        </Button>
      )}
      <Button verb={verb} onClick={() => verb.run("restart")}>
        {t("service.restart")}
      </Button>
      <Trouble error={verb.error} />
      <Confirm open={asking} title={t("service.stop")} text={t("service.stop.text", { id: app.id })}
        yes={t("service.stop")}
        onYes={() => { ask(false); verb.run("stop"); }} onNo={() => ask(false)} />
    </>
  );
}

function Scale({ app, again }) {
  const verb = useVerb((values) => post(`/v1/apps/${app.id}/scale`, { replicas: numeric(values.replicas ?? "") }),
    again);
  return <Form follows label={t("service.scale")} verb={verb} submit={t("service.scale")}
    initial={{ replicas: String(app.status.replicas) }}
    fields={[{ name: "replicas", label: t("service.replicas"), size: 6 }]} />;
}

function settingsOf(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(t("form.json", { error: error.message }));
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error(t("service.object"));
  return value;
}

/** Returns the patch that changes `from` to `to`: null for removed members. */
function difference(from, to) {
  const same = (name) => JSON.stringify(from[name]) === JSON.stringify(to[name]);
  const names = [...new Set([...Object.keys(from), ...Object.keys(to)])].filter((name) => !same(name));
  return Object.fromEntries(names.map((name) => [name, to[name] ?? null]));
}

/**
 * Settings as JSON; what the schema refuses is said at the field. Only what was changed here is sent: the rest may be
 * others'.
 */
function Settings({ path, title, again }) {
  const settings = useAnswer((signal) => get(path, { signal }), [path], { every: 10000, on: ["apps"], rest: 500 });
  const [draft, edit] = useState(null); // {text, from}: from are the settings at the start of editing
  const verb = useVerb(async ({ text, from }) => {
    const changes = difference(from, settingsOf(text));
    return Object.keys(changes).length ? patch(path, changes) : undefined;
  }, () => { edit(null); settings.again(); again(); });
  if (!settings.data) return settings.error?.status === 404 || settings.error?.status === 403 ? null
    : <Trouble error={settings.error} />;
  const shown = draft ?? { text: JSON.stringify(settings.data, null, 2), from: settings.data };
  return (
    <Card title={title}>
      <Trouble error={settings.error} />
      <form
        aria-label={title}
        onSubmit={(e) => {
          e.preventDefault();
          verb.run(shown);
        }}
      >
        <Field label={t("service.json")} error={verb.error?.message} hint={t("service.json.hint")}>
          {(props) => <textarea {...props} rows={8} spellcheck={false} value={shown.text}
            onInput={(e) => edit({ ...shown, text: e.currentTarget.value })} />}
        </Field>
        <Button verb={verb} type="submit" kind="main">
          {t("save")}
        </Button>
      </form>
    </Card>
  );
}

function Weight({ app, again }) {
  const verb = useVerb((values) => patch(`/v1/apps/${app.id}`, { weight: numeric(values.weight ?? "") }), again);
  return <Form follows label={t("service.weight")} verb={verb} submit={t("save")}
    initial={{ weight: String(app.weight ?? 100) }}
    fields={[{ name: "weight", label: t("service.weight"), size: 6 }]} />;
}

function Endpoints({ id }) {
  const info = useAnswer((signal) => get(`/v1/services/${id}`, { signal }), [id],
    { every: 10000, on: ["instances"], rest: 300 });
  const rows = (info.data?.endpoints ?? [])
    .flatMap((endpoint) => (endpoint.instances ?? []).map((i) => ({ ...i, endpoint: endpoint.name })));
  return (
    <Card title={t("service.endpoints")}>
      <Waiting of={info} />
      {info.data && (
        <Table
          caption={t("service.endpoints")}
          empty={t("service.endpoints.none")}
          rows={rows}
          columns={[
            { title: t("service.endpoint"), of: (row) => row.endpoint },
            { title: t("node"), of: (row) => <Link to={`/nodes/${row.node}`}>{row.node}</Link> },
            { title: t("node.address"), of: (row) => `${row.address ?? row.node}:${row.port ?? ""}` },
            { title: t("service.weight"), number: true, of: (row) => row.weight },
            { title: t("service.ready"), of: (row) => (row.ready ? t("yes") : t("not")) },
          ]}
        />
      )}
    </Card>
  );
}

function Moves({ id }) {
  const moves = useAnswer((signal) => get("/v1/migrations", { signal }), [],
    { every: 5000, on: ["instances"], rest: 500 });
  const rows = (moves.data?.items ?? []).filter((row) => row.workload === id);
  if (!rows.length) return null;
  return (
    <Card title={t("service.moves")}>
      <Table
        caption={t("service.moves")}
        rows={rows}
        columns={[
          { title: t("job.ordinal"), number: true, of: (row) => row.ordinal },
          { title: t("service.from"), of: (row) => row.from },
          { title: t("service.to"), of: (row) => row.to },
          { title: t("service.phase"), of: (row) => row.phase },
          { title: t("jobs.progress"), of: (row) => (row.progress === undefined ? "" : percent(row.progress, 1000)) },
        ]}
      />
    </Card>
  );
}

export function Service({ id }) {
  const { who } = useSession();
  const [picked, pick] = useState(null);
  const [only, know] = useThose((instance) => instance.workload === id);
  const app = useAnswer((signal) => get(`/v1/apps/${encodeURIComponent(id)}`, { signal }), [id],
    { every: 10000, on: ["instances"], rest: 200, only });
  if (!app.data) return <Page title={id}><Waiting of={app} /></Page>;
  const a = app.data, manages = may(who, "manage", a.owner, a.status.group), pods = a.status.instances ?? [];
  know(pods.map((pod) => pod.id));
  // the pod's next instance
  const chosen = picked &&
    (pods.find((pod) => pod.id === picked.id) ?? pods.find((pod) => pod.ordinal === picked.ordinal));
  return (
    <Page title={a.display ?? a.id} actions={manages && <Actions app={a} again={app.again} />}>
      <Trouble error={app.error} />
      <div class="cards">
        <Card title={t("service.about")}>
          <Facts rows={[
            [t("jobs.state"), <State state={shownState(a)} />], [t("queue.owner"), a.owner],
            [t("service.ready"), <span data-ready>{`${a.status.ready}/${a.status.replicas}`}</span>],
            [t("job.command"), a.command && <code>{a.command.join(" ")}</code>], [t("submit.image"), a.image],
          ]} />
          <Bar whole={a.status.replicas} parts={[{ value: a.status.ready }]}
            label={`${a.status.ready}/${a.status.replicas}`} />
          {(a.status.conditions ?? []).filter((c) => !c.status).map((c) => <p>{c.message}</p>)}
          {a.status.help && <p class="faint">{a.status.help}</p>}
        </Card>
        {manages && <Card title={t("service.change")}><Scale app={a} again={app.again} /><Weight app={a}
          again={app.again} /></Card>}
      </div>
      <Card title={t("service.pods")}>
        <Table caption={t("service.pods")} rows={pods} empty={t("job.tasks.none")} selected={chosen?.id} columns={[
          { title: t("job.ordinal"), number: true, of: (row) => row.ordinal },
          { title: t("node"), of: (row) => <Link to={`/nodes/${row.node}`}>{row.node}</Link> },
          { title: t("jobs.state"), of: (row) => <State state={row.state} /> },
          { title: t("service.ready"), of: (row) => (row.ready ? t("yes") : t("not")) },
          { title: "", of: (row) => <button type="button" aria-pressed={row === chosen}
            onClick={() => pick(row === chosen ? null : row)}>{t("job.look", { ordinal: row.ordinal })}</button> },
        ]} />
        {chosen && <Log of={chosen} label={t("job.log", { ordinal: chosen.ordinal })} />}
      </Card>
      <Moves id={id} />
      <Endpoints id={id} />
      <div class="cards">
        <Settings path={`/v1/apps/${id}/settings`} title={t("service.settings")} again={app.again} />
        {manages && <Settings path={`/v1/apps/${id}/install`} title={t("service.install")} again={app.again} />}
      </div>
    </Page>
  );
}
