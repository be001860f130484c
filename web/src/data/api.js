// api.js - requests to the daemon, with the token of this session.
//
// The token is kept in this tab's memory and session storage, never in a cookie: it goes with the tab, and no other
// site can make the browser send it.

import { t } from "../text/text.js";

const KEY = "berth.token";
let token = sessionStorage.getItem(KEY) ?? "";
let visit = new AbortController(); // from sign-in to sign-out, which aborts all requests of the session
let onSignedOut = () => {};

/** An error of the API; `field` names the member of the body that is at fault. */
export class ApiError extends Error {
  constructor(status, body) {
    super(body?.error?.message ?? `berthd answered with HTTP status ${status}`);
    this.status = status;
    this.code = body?.error?.code ?? "unknown";
    this.field = body?.error?.field;
  }
}

const BY_PROXY = new Set([502, 503, 504]); // without an error of berthd: sent by a proxy in front of it

/**
 * No answer came, or not all of it: berthd is down, or the network is. A browser says no more than "Failed to fetch".
 */
export class NoAnswer extends Error {
  constructor(cause) {
    super(t("no.answer"), { cause });
  }
}

/** Awaits a part of an answer; turns the browser's errors of a broken connection into NoAnswer. */
export const heard = (part) =>
  part.catch((error) => { throw error instanceof TypeError ? new NoAnswer(error) : error; });

export const signedIn = () => token !== "";

export function signIn(text) {
  token = text;
  sessionStorage.setItem(KEY, text);
}

export function signOut() {
  visit.abort();
  visit = new AbortController();
  token = "";
  sessionStorage.removeItem(KEY);
  onSignedOut();
}

/** Called when the daemon no longer takes the token. */
export function whenSignedOut(call) {
  onSignedOut = call;
}

function headersOf(body) {
  const headers = { Authorization: `Bearer ${token}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  return headers;
}

/**
 * An answer whose body is still to be read, a stream for instance. `body` is sent as JSON, `raw` as it is; the daemon
 * does once what has the same `key`.
 */
export async function open(method, path, { body, raw, signal, match, key } = {}) {
  const headers = headersOf(body),
    asker = token;
  if (match !== undefined) headers["If-Match"] = String(match);
  if (key !== undefined) headers["Idempotency-Key"] = key;
  const answer = await heard(fetch(path, {
    method, headers, signal: AbortSignal.any([visit.signal, ...(signal ? [signal] : [])]), cache: "no-store",
    credentials: "omit",
    body: raw ?? (body === undefined ? undefined : JSON.stringify(body)),
  }));
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => null);
  if (!told?.error && BY_PROXY.has(answer.status)) throw new NoAnswer();
  if (answer.status === 401 && token && token === asker) signOut(); // but not a user who has signed in since
  throw new ApiError(answer.status, told);
}

export async function request(method, path, options) {
  const answer = await open(method, path, options);
  const text = await heard(answer.text());
  return text ? JSON.parse(text) : null;
}

export const get = (path, options) => request("GET", path, options);
export const post = (path, body = {}, options = {}) => request("POST", path, { ...options, body });
export const put = (path, body, options = {}) => request("PUT", path, { ...options, body });
export const patch = (path, body, options = {}) => request("PATCH", path, { ...options, body });
export const remove = (path, options) => request("DELETE", path, options);

const PAGE = 1000;

/** Returns a whole list, page by page. */
export async function getAll(path, values = {}, options = {}) {
  const items = [];
  let after;
  do {
    const page = await get(query(path, { limit: PAGE, ...values, after }), options);
    items.push(...page.items);
    after = page.continue;
  } while (after !== undefined);
  return { items };
}

/** Returns a path with a query of the non-empty values. */
export function query(path, values) {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `${path}${path.includes("?") ? "&" : "?"}${new URLSearchParams(given)}` : path;
}
