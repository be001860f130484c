// shell.jsx - a shell in a task, one line at a time: sends typed lines, shows the output.

import { useEffect, useRef, useState } from "preact/hooks";
import { open, post, remove } from "../data/api.js";
import { readLines } from "../data/stream.js";
import { t } from "../text/text.js";

const KEPT = 100000;
const bytes = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

export function Shell({ instance }) {
  const call = useRef(null),
    control = useRef(null),
    box = useRef(null);
  const [out, set] = useState(""),
    [line, setLine] = useState(""),
    [state, setState] = useState("");
  const add = (more) => set((old) => (old + more).slice(-KEPT));
  const leave = () => control.current?.abort(); // closes the shell when it is no longer shown, also at sign-out
  useEffect(() => leave, [instance]);
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [out]);

  const begin = async () => {
    const mine = new AbortController(),
      texts = { out: new TextDecoder(), err: new TextDecoder() }; // a character may come in two pieces
    control.current = mine;
    set("");
    setState("open");
    try {
      const begun = (await post(`/v1/instances/${instance}/exec`, { command: ["/bin/sh"] })).call;
      if (mine.signal.aborted) return await remove(`/v1/calls/${begun}`);
      call.current = begun;
      await readLines(await open("GET", `/v1/calls/${begun}`, { signal: mine.signal }), (said) => {
        for (const name of ["out", "err"]) if (said[name]) add(texts[name].decode(bytes(said[name]), { stream: true }));
        if (said.exit !== undefined) add(t("shell.exit", { code: said.exit }));
        if (said.error) add(said.error);
      });
    } catch (error) {
      if (!mine.signal.aborted) add(error.message);
    }
    if (control.current === mine) {
      call.current = null;
      setState("");
    }
    return undefined;
  };
  const send = (event) => {
    event.preventDefault();
    if (!call.current) return;
    add(`$ ${line}\n`);
    open("POST", `/v1/calls/${call.current}/input`, { raw: `${line}\n` }).catch((error) => add(error.message));
    setLine("");
  };
  if (!state && !out)
    return (
      <button type="button" onClick={begin}>
        {t("shell.begin")}
      </button>
    );
  return (
    <>
      <pre class="log" ref={box} tabIndex={0} role="log" aria-label={t("shell.title")}>
        {out}
      </pre>
      {state ? (
        <form class="fields" onSubmit={send}>
          <input class="line-in" aria-label={t("shell.line")} value={line} spellcheck={false} autoComplete="off"
            onInput={(e) => setLine(e.currentTarget.value)} />
          <button>{t("shell.send")}</button>
          <button type="button" onClick={leave}>
            {t("shell.end")}
          </button>
        </form>
      ) : (
        <button type="button" onClick={begin}>
          {t("shell.begin")}
        </button>
      )}
    </>
  );
}
