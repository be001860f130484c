/* plugin_list.h - `kubectl berth queue` and `kubectl berth nodes`: what waits, in the order of the plan; what nodes have, and what is asked of them.
 */
#pragma once

#include "base/str.h"
#include "kube/kubectl/plugin_view.h"

/* All that wait, or of one namespace alone; positions are of all. As a table or as JSON. */
void plugin_queue(struct plugin_view *v, const char *namespace, bool json, struct str *to);
void plugin_nodes(struct plugin_view *v, bool json, struct str *to);
