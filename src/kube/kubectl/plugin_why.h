/* plugin_why.h - the texts of `kubectl berth why`: why a pod is on its node, or why it is pending and what would help.
 *
 * Texts are appended to a string, so that tests can compare them. They depend only on the view.
 */
#pragma once

#include "base/str.h"
#include "kube/kubectl/plugin_view.h"

/* Explains the placement of a pod that has a node (workload id as in kube/cache/cache.h): the scores that make the node
 * the best. Changes the view's cluster. */
void plugin_why_placed(struct plugin_view *v, const struct cache_workload *pod, struct str *to);
/* Explains a pending pod. Changes the view's cluster and restores it. */
void plugin_why_pending(struct plugin_view *v, const struct cache_workload *pod, struct str *to);

/* "2h", "5m", "30s": a time span in its largest unit, as kubectl prints ages. */
const char *plugin_age(struct arena *arena, int64_t span_ns);
/* "4 cpu, 8Gi memory" */
void plugin_amounts(const struct berth_amount *amounts, size_t len, struct str *to);
