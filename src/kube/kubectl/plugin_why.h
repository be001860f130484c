/* plugin_why.h - `kubectl berth why` in words: why a pod is where it is, or why it waits and what would help.
 *
 * Texts are added to a string, so that they can be held to. What is told follows from the view alone.
 */
#pragma once

#include "base/str.h"
#include "kube/kubectl/plugin_view.h"

/* The pod of this workload (kube/cache/cache.h) has a place: which, and by which scores it is the best. Changes the view's cluster. */
void plugin_why_placed(struct plugin_view *v, const struct project_holder *pod, struct str *to);
/* It waits. Changes the view's cluster, and mends it. */
void plugin_why_waits(struct plugin_view *v, const struct project_holder *pod, struct str *to);

/* "2h", "5m", "30s": the larger unit of a span, as kubectl tells ages. */
const char *plugin_age(struct arena *arena, int64_t span_ns);
/* "4 cpu, 8Gi memory" */
void plugin_amounts(const struct berth_amount *amounts, size_t len, struct str *to);
