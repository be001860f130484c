/* plugin_list.h - `kubectl berth queue` and `kubectl berth nodes`: pending pods in the order of the plan; resources of
 * nodes and their use.
 */
#pragma once

#include "base/str.h"
#include "kube/kubectl/plugin_view.h"

/* Prints all pending pods, or those of one namespace (positions count all), as a table or as JSON. */
void plugin_queue(struct plugin_view *v, const char *namespace, bool json, struct str *to);
void plugin_nodes(struct plugin_view *v, bool json, struct str *to);
