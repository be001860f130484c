// hooks.js - how pages read data: collections that are kept up to date, answers that are requested again, verbs and
// their results.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, post } from "./api.js";
import { collection, keep, listen } from "./feed.js";
import { t } from "../text/text.js";

const FAILED_MS = 2000,
  LATE_MS = 60000,
  PAUSE_MAX_MS = 5000;
const LATER = new Set([429, 503]);

/** Returns the objects of a kind, kept up to date: {items: Map, ready, error, version}. */
export function useCollection(kind) {
  const [, again] = useState(0);
  useEffect(() => keep(kind, () => again((n) => n + 1)), [kind]);
  return collection(kind);
}

/**
 * The answer of `ask(signal)`: {data, error, loading, again}. It is asked again when `deps` or `when` change, after
 * `every` milliseconds, and when an object of the kinds in `on` changes (at most every `rest` milliseconds). What was
 * known stays on the screen until the new answer is there, unless `deps` have changed. One at a time: what is asked for
 * meanwhile is asked once the answer is there, after as long a pause as that took.
 */
export function useAnswer(ask, deps, { every = 0, on = [], rest = 1000, only = () => true, when = "" } = {}) {
  const [state, set] = useState({ data: null, error: null, loading: true });
  const asking = useRef(ask),
    passes = useRef(only),
    line = useRef(null);
  asking.current = ask;
  passes.current = only;
  const again = useCallback(() => line.current?.ask(), []);

  useEffect(() => {
    const control = new AbortController();
    let timer = 0;
    const mine = { busy: false, more: false, when };
    line.current = mine;
    mine.ask = async () => {
      if (mine.busy) {
        mine.more = true;
        return;
      }
      clearTimeout(timer);
      Object.assign(mine, { busy: true, more: false });
      const began = performance.now(),
        late = AbortSignal.timeout(LATE_MS);
      const answer = await asking.current(AbortSignal.any([control.signal, late])).then(
        (data) => ({ data, error: null }),
        (error) => ({ error: late.aborted ? new Error(t("late")) : error }),
      );
      mine.busy = false;
      if (control.signal.aborted) return;
      set((s) => ({ data: s.data, ...answer, loading: false }));
      if (mine.more) timer = setTimeout(mine.ask, Math.min(performance.now() - began, PAUSE_MAX_MS));
    };
    set((s) => ({ ...s, data: null, loading: true }));
    mine.ask();
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, deps);
  useEffect(() => {
    if (line.current.when === when) return;
    line.current.when = when;
    again();
  }, [when]);
  useEffect(() => {
    if (!state.error || (state.error instanceof ApiError && !LATER.has(state.error.status))) return undefined;
    const timer = setTimeout(again, FAILED_MS); // the connection broke, or the daemon is busy: repeat the request
    return () => clearTimeout(timer);
  }, [state.error]);
  useEffect(() => {
    if (!every) return undefined;
    const timer = setInterval(() => document.hidden || line.current.busy || again(), every);
    return () => clearInterval(timer);
  }, [every]);
  useEffect(() => {
    let timer = 0,
      last = 0;
    const changed = (event, id) => {
      if (timer || !passes.current(event, id)) return;
      timer = setTimeout(
        () => {
          timer = 0;
          last = performance.now();
          again();
        },
        Math.max(30, rest - (performance.now() - last)),
      );
    };
    const ends = on.map((kind) => listen(kind, changed));
    return () => {
      clearTimeout(timer);
      for (const end of ends) end();
    };
  }, [on.join()]);
  return { ...state, again };
}

/**
 * [only, know]: whether a change of instances is about those of which `is` is true. Of one that has gone only its id is
 * told: `know(ids)` names those that were there before.
 */
export function useThose(is) {
  const ids = useRef(new Set());
  const know = (more) => {
    for (const id of more) ids.current.add(String(id));
  };
  const only = (event, id) => {
    if (event.type === "gone") return ids.current.has(id);
    if (!is(event.object)) return false;
    know([id]);
    return true;
  };
  return [only, know];
}

/** A verb: {run, busy, error, clear}. `run` resolves to the answer, or to undefined if it failed. */
export function useVerb(act, done) {
  const [state, set] = useState({ busy: false, error: null });
  const run = async (...args) => {
    set({ busy: true, error: null });
    try {
      const answer = await act(...args);
      set({ busy: false, error: null });
      done?.(answer);
      return answer ?? true;
    } catch (error) {
      set({ busy: false, error });
      return undefined;
    }
  };
  return { ...state, run, clear: () => set({ busy: false, error: null }) };
}

// Not randomUUID, which pages over plain HTTP do not have.
const newKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/**
 * A post that makes something, once: where the answer was lost and the same is sent again, it has the same key, and the
 * daemon gives the first answer. What it refuses it keeps no key of.
 */
export function usePostOnce(path) {
  const last = useRef({}); // sent, and not done as far as is known
  return async (body) => {
    const text = JSON.stringify(body);
    if (last.current.text !== text) last.current = { text, key: newKey() };
    const answer = await post(path, body, { key: last.current.key });
    last.current = {};
    return answer;
  };
}

/** Returns the present time in milliseconds, updated every `every`. */
export function useNow(every = 1000) {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => document.hidden || set(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}
