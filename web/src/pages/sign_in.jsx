// sign_in.jsx - asks for a token, and tries it before it is kept.

import { useState } from "preact/hooks";
import { signIn, signOut } from "../data/api.js";
import { Field } from "../parts/parts.jsx";
import { t } from "../text/text.js";

export function SignIn({ onEnter }) {
  const [text, setText] = useState(""),
    [error, setError] = useState(""),
    [busy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    const token = text.trim();
    if (!token) return setError(t("sign.empty"));
    if (!/^[\x21-\x7e]+$/.test(token)) return setError(t("sign.odd"));
    setBusy(true);
    signIn(token);
    try {
      await onEnter();
    } catch (failure) {
      signOut();
      setBusy(false);
      setError(failure.status === 401 ? t("sign.wrong") : failure.message);
    }
    return undefined;
  };
  return (
    <main class="sign-in card">
      <h1>{t("sign.title")}</h1>
      <p class="faint">{t("sign.text")}</p>
      <form onSubmit={submit} noValidate>
        <Field label={t("sign.token")} error={error} hint={t("sign.hint")}>
          {(props) => (
            <input
              {...props}
              type="password"
              autoComplete="off"
              spellcheck={false}
              value={text}
              autoFocus
              onInput={(e) => {
                setText(e.currentTarget.value);
                setError("");
              }}
            />
          )}
        </Field>
        <button class="main" disabled={busy}>
          {t("sign.in")}
        </button>
      </form>
    </main>
  );
}
