/* rules_parts.h - the single rule functions for the table in rules.c, and the helpers that they share. */
#pragma once

#include "rules.h"

bool text_given(const char *s);
bool text_in(const char *s, const char *const *list, size_t len);
const struct berth_shape *query_shape(const struct placement_query *placement_query);
const struct berth_label *label_find(const struct berth_label *labels, size_t len, const char *key); /* NULL: none */

/* Each returns true if the node refuses the pod. */
bool over_refuses(const struct placement_query *placement_query, size_t node);
bool pressure_refuses(const struct placement_query *placement_query, size_t node);
bool headroom_refuses(const struct placement_query *placement_query, size_t node);
bool resources_refuse(const struct placement_query *placement_query, size_t node);
bool gpu_kind_refuses(const struct placement_query *placement_query, size_t node);
bool gpu_refuses(const struct placement_query *placement_query, size_t node);
bool ports_refuse(const struct placement_query *placement_query, size_t node);
bool volume_busy_refuses(const struct placement_query *placement_query, size_t node);
bool attach_refuses(const struct placement_query *placement_query, size_t node);
bool max_per_node_refuses(const struct placement_query *placement_query, size_t node);
bool spread_refuses(const struct placement_query *placement_query, size_t node);
bool near_refuses(const struct placement_query *placement_query, size_t node);
bool apart_refuses(const struct placement_query *placement_query, size_t node);
