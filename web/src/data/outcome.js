// outcome.js - outcomes of work: the final states of jobs, services and instances, apart from the states of active
// work.

/** Every outcome of the API, in the order of the filter. */
export const OUTCOMES = ["succeeded", "failed", "cancelled", "timed-out", "out-of-memory", "node-lost", "preempted"];

/** Icons beside the words, so that outcomes of one colour differ without it. */
export const ICONS = { succeeded: "✓", failed: "✗", cancelled: "⊘", "timed-out": "◷", "out-of-memory": "▣",
  "node-lost": "◌", preempted: "»" };

/** Returns the state to show for a workload: its outcome if it has ended. */
export function shownState(work) {
  const { state, outcome } = work.status;
  return outcome || state;
}
