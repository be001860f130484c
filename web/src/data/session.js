// session.js - the signed-in user and the user's permissions, language and theme, as a context for all components.

import { createContext } from "preact";
import { useContext } from "preact/hooks";

export const Session = createContext(null);
export const useSession = () => useContext(Session);

/**
 * Whether the caller may do this with something of `owner` and `group`; the daemon decides, this only hides buttons.
 */
export function may(who, permission, owner, group) {
  const scope = who.permissions[permission] ?? "none";
  if (scope === "all") return true;
  if (scope === "group") return owner === who.user || (group !== undefined && group === who.group) ||
    owner === undefined;
  return scope === "own" && (owner === who.user || owner === undefined);
}
