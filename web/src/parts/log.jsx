// log.jsx - the live output of a task. It scrolls to the end unless the user has scrolled up.
//
// A line that breaks off while the task runs is taken up again, from the end of what there is; it is given back while
// nobody looks at the page.

import { useEffect, useRef, useState } from "preact/hooks";
import { open, query } from "../data/api.js";
import { pause, readText, whileShown } from "../data/stream.js";
import { t } from "../text/text.js";

const KEPT = 400000,
  TAIL = 500;
const WRITES = new Set(["starting", "running", "stopping"]);
const PAUSE_MS = [1000, 2000, 5000, 10000, 30000];

/**
 * Reads until `signal` is aborted; `show` is called with the whole text at most once a frame, `say` with how it ended.
 */
async function readLog(path, follow, { signal, show, say }) {
  let text = "",
    frame = 0,
    heard = false;
  const draw = () => {
    frame = 0;
    show(text.slice(-KEPT));
  };
  const read = async (shown) => {
    const answer = await open("GET", path, { signal: shown });
    text = "";
    say("");
    await readText(answer, (piece) => {
      heard = true;
      text += piece;
      if (text.length > 2 * KEPT) text = text.slice(-KEPT); // also while nothing is drawn
      frame ||= requestAnimationFrame(draw);
    });
    draw();
  };
  signal.addEventListener("abort", () => cancelAnimationFrame(frame), { once: true });
  for (let failures = 0; !signal.aborted; failures++) {
    heard = false;
    const said = await whileShown(signal, read).then(() => t("log.end"),
      (error) => (error.name === "AbortError" ? "" : error.message));
    if (signal.aborted) return;
    if (document.hidden && follow) continue;
    say(said);
    if (!follow) return;
    if (heard) failures = 0;
    await pause(PAUSE_MS[Math.min(failures, PAUSE_MS.length - 1)], signal);
  }
}

function Text({ path, follow, label }) {
  const box = useRef(null),
    atEnd = useRef(true);
  const [text, set] = useState(""),
    [note, setNote] = useState(""),
    [turn, next] = useState(0);
  useEffect(() => {
    const control = new AbortController();
    setNote("");
    readLog(query(path, { tail: TAIL, follow: follow ? "true" : "" }), follow,
      { signal: control.signal, show: set, say: setNote });
    return () => control.abort();
  }, [path, follow, turn]);
  useEffect(() => {
    if (atEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  const scrolled = ({ currentTarget: b }) => {
    atEnd.current = b.scrollTop + b.clientHeight > b.scrollHeight - 20;
  };
  return (
    <>
      <pre class="log" ref={box} tabIndex={0} role="log" aria-label={label} onScroll={scrolled}>{text}</pre>
      {note && <p class="faint">{note} <button type="button" onClick={() => next(turn + 1)}>{t("log.again")}</button>
        </p>}
    </>
  );
}

/**
 * Of an instance that is there, or of the last one that was: {id or instance, node, state}. The next one of the same
 * number writes another log.
 */
export function Log({ of, label }) {
  if (of.state === "assigned") return <p class="faint">{t("log.none")}</p>;
  const id = of.id ?? of.instance;
  return <Text key={id} path={query(`/v1/instances/${id}/logs`, { node: of.node })} follow={WRITES.has(of.state)}
    label={label} />;
}
