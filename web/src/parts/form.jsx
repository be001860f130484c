// form.jsx - forms whose fields are rows of a table; an error about a field is shown at the field.

import { useState } from "preact/hooks";
import { Button, Field, Trouble } from "./parts.jsx";
import { t } from "../text/text.js";

/** Returns the field of an error: "requests.cpu: ..." belongs to the longest field name that begins its path. */
function faultOf(error, fields) {
  if (!error?.field) return undefined;
  const path = error.field.replace(/\[.*/, "");
  return fields.map((f) => f.of ?? f.name).filter((name) => path === name || path.startsWith(`${name}.`))
    .sort((a, b) => b.length - a.length)[0];
}

function Input({ field, value, set, props }) {
  const shared = { ...props, name: field.name, onInput: (e) => set(e.currentTarget.value) };
  if (field.choices)
    return (
      <select {...shared} value={value}>
        {field.choices.map((c) => (
          <option value={c}>{c || "–"}</option>
        ))}
      </select>
    );
  if (field.lines) return <textarea {...shared} rows={field.lines} spellcheck={false} value={value} />;
  return <input {...shared} value={value} size={field.size ?? 18} placeholder={field.placeholder} spellcheck={false} />;
}

/**
 * fields: [{name, label, hint, choices, lines, of: the member of the body it is about, if of another name}]. `error` is
 * what the server said last; `children` are shown beside the button, and given the values. A field that nobody has
 * typed into has what is in `initial` now; one that `follows` has it again once what was typed is done.
 */
export function Form({ fields, initial = {}, verb, title, submit, children, label, follows }) {
  const [typed, type] = useState({});
  const values = { ...initial, ...typed };
  const fault = faultOf(verb.error, fields);
  const send = async (event) => {
    event.preventDefault();
    // unless the user has typed more
    if ((await verb.run(values)) && follows) type((now) => (now === typed ? {} : now));
  };
  return (
    <form aria-label={label ?? title} noValidate onSubmit={send}>
      <div class="fields">
        {fields.map((field) => (
          <Field label={field.label} hint={field.hint}
            error={fault === (field.of ?? field.name) ? verb.error.message : undefined}>
            {(props) => <Input field={field} props={props} value={values[field.name] ?? ""}
              set={(value) => type({ ...typed, [field.name]: value })} />}
          </Field>
        ))}
      </div>
      {verb.error && !fault && <Trouble error={verb.error} />}
      <div class="actions">
        <Button verb={verb} kind="main" type="submit">
          {submit}
        </Button>
        {children?.(values)}
      </div>
    </form>
  );
}

/** Splits a command line into a list of words, with quotes like in a shell; throws if one is left open. */
export function words(text) {
  const out = [];
  let word = null,
    quote = "";
  for (const c of text) {
    if (quote) {
      if (c === quote) quote = "";
      else word += c;
    } else if (c === "'" || c === '"') {
      quote = c;
      word ??= "";
    } else if (/\s/.test(c)) {
      if (word !== null) out.push(word);
      word = null;
    } else {
      word = (word ?? "") + c;
    }
  }
  if (quote) throw Object.assign(new Error(t("form.quote")), { field: "command" });
  if (word !== null) out.push(word);
  return out;
}

/** Returns a number if the text is one, else the text: the server reports the error. */
export const numeric = (text) => (/^-?[0-9]+(\.[0-9]+)?$/.test(text) ? Number(text) : text);
