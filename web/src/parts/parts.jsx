// parts.jsx - small components that every page uses.

import { useEffect, useId, useRef, useState } from "preact/hooks";
import { ICONS } from "../data/outcome.js";
import { t, when } from "../text/text.js";

export function Page({ title, actions, children }) {
  useEffect(() => {
    document.title = `${title} – Berth`;
  }, [title]);
  return (
    <div class="page">
      <div class="head">
        <h1 id="page-title" tabIndex={-1}>
          {title}
        </h1>
        {actions && <div class="actions">{actions}</div>}
      </div>
      {children}
    </div>
  );
}

export function Card({ title, actions, children, wide, label }) {
  const id = useId();
  return (
    <section class={wide ? "card wide" : "card"} aria-labelledby={title ? id : undefined} aria-label={label}>
      {title && (
        <div class="head">
          <h2 id={id}>{title}</h2>
          {actions && <div class="actions">{actions}</div>}
        </div>
      )}
      {children}
    </section>
  );
}

export const Trouble = ({ error }) =>
  error ? (
    <p class="trouble" role="alert">
      {error.message}
    </p>
  ) : null;

/** Shown until an answer of useAnswer arrives, and its error. */
export function Waiting({ of }) {
  if (of.error) return <Trouble error={of.error} />;
  return of.data ? null : (
    <p class="faint" role="status">
      {t("loading")}
    </p>
  );
}

/** A state with its colour; an outcome has an icon in place of the dot. */
export const State = ({ state }) => (
  <span class={`state s-${state}${ICONS[state] ? " outcome" : ""}`}>
    {ICONS[state] && (
      <span class="icon" aria-hidden="true">
        {ICONS[state]}
      </span>
    )}
    {t(`state.${state}`)}
  </span>
);

/** `guess`: the time depends on a run time that was not stated. */
export const Time = ({ at, guess }) => (at ? <time dateTime={at} title={guess ? t("guess") : new Date(at).toString()}>
  {guess ? "~ " : ""}{when(at)}</time> : <span>–</span>);

export const Link = ({ to, children, ...rest }) => (
  <a href={`#${to}`} {...rest}>
    {children}
  </a>
);

/** A bar of parts of a whole: [{value, label, color}], with a text for screen readers. */
export function Bar({ parts, whole, label }) {
  return (
    <span class="bar" role="img" aria-label={label} title={label}>
      {parts.map((part) => (
        <span
          class={`part ${part.kind ?? ""}`}
          style={{ width: `${whole > 0 ? Math.min(100, (100 * part.value) / whole) : 0}%`, background: part.color }}
        />
      ))}
    </span>
  );
}

/**
 * Columns: {title, of(row), number, class}. Rows have an id, or a position. One with `bound` scrolls by itself where it
 * is tall.
 */
export function Table({ columns, rows, caption, empty, onRow, selected, bound }) {
  if (!rows.length) return <p class="faint">{empty ?? t("nothing")}</p>;
  return (
    <div class={bound ? "scroll bound" : "scroll"} tabIndex={0} role="group" aria-label={caption}>
      <table>
        <caption class="hidden">{caption}</caption>
        <thead><tr>
          {columns.map((c) => (c.title ? <th scope="col" class={c.number ? "number" : undefined}>{c.title}</th>
            : <td />))}</tr></thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id ?? row.position}
              class={selected !== undefined && selected === row.id ? "selected" : undefined}
              onClick={onRow && (() => onRow(row))}>
              {columns.map((c) => <td class={c.number ? "number" : c.class}>{c.of(row)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const PAGE = 100;

/** A table that shows one page of its rows at a time. */
export function Paged({ rows, ...table }) {
  const [page, turn] = useState(0);
  const pages = Math.max(1, Math.ceil(rows.length / PAGE)),
    at = Math.min(page, pages - 1);
  return (
    <>
      <Table rows={rows.slice(at * PAGE, (at + 1) * PAGE)} {...table} />
      {pages > 1 && (
        <div class="actions">
          <button type="button" disabled={at === 0} onClick={() => turn(at - 1)}>
            {t("back")}
          </button>
          <span>{t("pages", { page: at + 1, pages })}</span>
          <button type="button" disabled={at === pages - 1} onClick={() => turn(at + 1)}>
            {t("next")}
          </button>
        </div>
      )}
    </>
  );
}

/** A label and its field, with the server's error below. */
export function Field({ label, error, hint, children }) {
  const id = useId();
  const described = error ? `${id}-error` : hint ? `${id}-hint` : undefined;
  return (
    <div class={error ? "field bad" : "field"}>
      <label for={id}>{label}</label>
      {children({ id, "aria-invalid": error ? "true" : undefined, "aria-describedby": described })}
      {hint && !error && (
        <p class="faint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error && (
        <p class="trouble" role="alert" id={`${id}-error`}>
          {error}
        </p>
      )}
    </div>
  );
}

/**
 * A line of text that counts when it is left, or with Enter. Until then it is the writer's: the page is drawn anew with
 * every answer, and would put back what counted before.
 */
export function Entry({ value, onChange, ...rest }) {
  const [draft, edit] = useState(null), drop = () => edit(null);
  return <input {...rest} value={draft ?? value} onInput={(e) => edit(e.currentTarget.value)}
    onChange={(e) => { drop(); onChange(e); }} onBlur={drop} />;
}

export function Button({ verb, children, kind, ...rest }) {
  return (
    <button type="button" class={kind} disabled={verb?.busy} aria-busy={verb?.busy ? "true" : undefined} {...rest}>
      {children}
    </button>
  );
}

/**
 * A modal dialog: in the middle of the screen wherever the page is scrolled, with the focus inside; Escape closes it.
 */
export function Dialog({ open, title, onClose, children }) {
  const dialog = useRef(null);
  useEffect(() => {
    if (open && !dialog.current.open) dialog.current.showModal();
    if (!open && dialog.current.open) dialog.current.close();
  }, [open]);
  return (
    <dialog ref={dialog} aria-label={title} onClose={onClose}>
      {open && (
        <>
          <h2>{title}</h2>
          {children}
        </>
      )}
    </dialog>
  );
}

/**
 * A question before what cannot be undone. `yes` and `no` each name what happens: "Cancel the job" and "Keep the job".
 */
export function Confirm({ open, title, text, yes, no, onYes, onNo }) {
  return (
    <Dialog open={open} title={title} onClose={onNo}>
      <p>{text}</p>
      <div class="actions">
        <button type="button" onClick={onNo}>
          {no ?? t("no")}
        </button>
        <button type="button" class="danger" onClick={onYes}>
          {yes}
        </button>
      </div>
    </Dialog>
  );
}

export function Facts({ rows }) {
  return (
    <dl class="facts">
      {rows
        .filter(([, value]) => value !== undefined && value !== null && value !== "")
        .map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
