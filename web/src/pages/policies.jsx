// policies.jsx - the existing policies, and an editor for a formula that is tried on the present queue.

import { useEffect, useState } from "preact/hooks";
import { get, getAll, patch, post, put, query } from "../data/api.js";
import { useAnswer, useVerb } from "../data/hooks.js";
import { may, useSession } from "../data/session.js";
import { Button, Card, Confirm, Field, Link, Page, Table, Waiting } from "../parts/parts.jsx";
import { FactorBar, FactorLegend, largest } from "../parts/factors.jsx";
import { t } from "../text/text.js";

const SHOWN = 50,
  PAUSE_MS = 400;
const BEGIN = "return 10 * age + 5 * fair_share";

/**
 * The order that the formula would give, asked for when the writer pauses; the last good one stays while it is wrong.
 */
function usePreview(formula) {
  const [state, set] = useState({ data: null, error: null });
  useEffect(() => {
    const control = new AbortController();
    const timer = setTimeout(() => {
      post(query("/v1/policies/test", { limit: SHOWN }), { formula }, { signal: control.signal }).then(
        (data) => set({ data, error: null }),
        (error) => control.signal.aborted || set((s) => ({ data: s.data, error })),
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [formula]);
  return state;
}

function moved(row) {
  if (!row.was || row.was === row.position) return t("policy.same");
  return row.was > row.position ? `▲ ${row.was - row.position}` : `▼ ${row.position - row.was}`;
}

/** Shows only the factors that the formula uses. */
function Preview({ data, formula }) {
  if (!data) return null;
  const said = new Set(formula.match(/[a-z_]+/g)), spoken = (name) => said.has(name),
    named = (row) => `${row.name ?? row.kind} ${row.id}`;
  const lists = data.items.map((row) => row.factors ?? []);
  return (
    <>
      <Table caption={t("policy.preview")} empty={t("queue.empty")} rows={data.items} columns={[
        { title: t("queue.position"), number: true, of: (row) => row.position },
        { title: t("policy.moved"), of: moved },
        { title: t("queue.job"),
          of: (row) => (row.id && row.kind === "job" ? <Link to={`/jobs/${row.id}`}>{named(row)}</Link>
            : row.id ? named(row) : t("queue.hidden")) },
        { title: t("queue.owner"), of: (row) => row.owner ?? row.group ?? "–" },
        { title: t("policy.key"), number: true, of: (row) => row.key },
        { title: t("queue.factors"), class: "bars",
          of: (row) => <FactorBar factors={row.factors} whole={largest(lists, spoken)} named={spoken} /> },
      ]} />
      <FactorLegend lists={lists} named={spoken} />
      {data.now?.length > 0 && <p>{t("policy.now", { count: data.now.length })}</p>}
    </>
  );
}

function Editor({ chosen, onSaved }) {
  const { who } = useSession();
  const [name, setName] = useState(chosen?.id ?? ""),
    [formula, setFormula] = useState(chosen?.formula ?? BEGIN);
  const [asking, ask] = useState("");
  const preview = usePreview(formula);
  const save = useVerb(async ({ over }) => {
    if (!/^[a-z0-9-]+$/.test(name)) throw Object.assign(new Error(t("policy.name.bad")), { field: "id" });
    if (over) return put(`/v1/policies/${name}`, { formula });
    const opened = chosen?.id === name;
    try {
      return await (opened ? patch(`/v1/policies/${name}`, { formula }, { match: chosen.revision })
        : post("/v1/policies", { id: name, formula }));
    } catch (error) {
      if (error.status !== (opened ? 412 : 409)) throw error;
      ask(opened ? "policy.changed" : "policy.there");
      return null;
    }
  }, (saved) => saved && onSaved({ id: name, formula, revision: saved.revision }));
  return (
    <div class="split">
      <Card title={t("policy.formula")}>
        <form
          aria-label={t("policy.formula")}
          onSubmit={(e) => {
            e.preventDefault();
            save.run({});
          }}
        >
          <Field label={t("policy.formula")} error={preview.error?.message} hint={t("policy.hint")}>
            {(props) => <textarea {...props} rows={12} spellcheck={false} value={formula}
              onInput={(e) => setFormula(e.currentTarget.value)} />}
          </Field>
          {may(who, "system") ? (
            <>
              <Field label={t("policy.name")} error={save.error?.message}>
                {(props) => <input {...props} value={name} onInput={(e) => setName(e.currentTarget.value)} />}
              </Field>
              <Button verb={save} type="submit" kind="main">{t("save")}</Button>
              <Confirm open={asking !== ""} title={t("policy.over")} text={asking && t(asking, { name })}
                yes={t("policy.over")}
                onYes={() => { ask(""); save.run({ over: true }); }} onNo={() => ask("")} />
            </>
          ) : (
            <p class="faint">{t("policy.look.only")}</p>
          )}
        </form>
      </Card>
      <Card title={t("policy.preview")}>
        {!preview.data && !preview.error && (
          <p class="faint" role="status">
            {t("loading")}
          </p>
        )}
        <Preview data={preview.data} formula={formula} />
      </Card>
    </div>
  );
}

export function Policies() {
  const [{ chosen, turn }, choose] = useState({ chosen: null, turn: 0 }); // a new turn resets the editor
  const list = useAnswer((signal) => getAll("/v1/policies", {}, { signal }), [], { on: ["policies"], rest: 300 });
  const { who } = useSession();
  const settings = useAnswer(
    (signal) => (may(who, "system") ? get("/v1/system/settings", { signal }) : Promise.resolve({})), []);
  return (
    <Page title={t("page.policies")}>
      <Card title={t("policy.list")}>
        {settings.data?.policy && <p>{t("policy.force", { name: settings.data.policy })}</p>}
        <Waiting of={list} />
        {list.data && <Table caption={t("policy.list")} rows={list.data.items} empty={t("policy.none")} columns={[
          { title: t("policy.name"), of: (p) => p.id },
          { title: t("policy.what"),
            of: (p) => (p.formula ? <code>{p.formula.split("\n").at(-1).slice(0, 80)}</code>
            : `${p.ranking} ${p.weights ? JSON.stringify(p.weights) : ""}`) },
          { title: "", of: (p) => p.formula && <button type="button"
            onClick={() => choose({ chosen: p, turn: turn + 1 })}>{t("policy.open", { name: p.id })}</button> },
        ]} />}
      </Card>
      <Editor
        key={turn}
        chosen={chosen}
        onSaved={(saved) => {
          choose({ chosen: saved, turn });
          list.again();
        }}
      />
    </Page>
  );
}
