// route.js - the present location: "#/jobs/17?state=running" is ["jobs", "17"] with {state: "running"}.

import { useEffect, useState } from "preact/hooks";

/** Decodes a part of an address; a badly encoded one, typed by hand, is used unchanged. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function read() {
  const [path, search] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decoded), query: Object.fromEntries(new URLSearchParams(search)) };
}

export function useRoute() {
  const [route, set] = useState(read);
  useEffect(() => {
    const moved = () => set(read());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return route;
}

export function go(path) {
  location.hash = path;
}

/** Changes filters in the address without a new entry in the browser's history. */
export function filter(path, values) {
  const given = Object.entries(values).filter(([, value]) => value);
  const search = given.length ? `?${new URLSearchParams(given)}` : "";
  history.replaceState(null, "", `#${path}${search}`);
  dispatchEvent(new HashChangeEvent("hashchange"));
}
