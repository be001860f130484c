// route.js - where in the dashboard we are: "#/jobs/17?state=running" is ["jobs", "17"] with {state: "running"}.

import { useEffect, useState } from "preact/hooks";

/** What somebody wrote by hand need not be well encoded: then it is taken as it stands. */
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

/** Changes filters in the address, without a step to go back over. */
export function filter(path, values) {
  const given = Object.entries(values).filter(([, value]) => value);
  const search = given.length ? `?${new URLSearchParams(given)}` : "";
  history.replaceState(null, "", `#${path}${search}`);
  dispatchEvent(new HashChangeEvent("hashchange"));
}
