/* defaults.h - what the API server adds to the requests of pods when they are made: LimitRanges of their namespace, and the overhead of a RuntimeClass.
 *
 * For who judges a template before there is a pod of it; pods that are there have it.
 */
#pragma once

#include "kube/object/meta.h"

extern const struct kube_keep kube_keep_limit_range, kube_keep_runtime_class;

/* v1.LimitRange: adds what containers request of which they say nothing, unless it is there. v1.RuntimeClass: adds its overhead. Objects without their
 * envelope; false where they are malformed. */
bool kube_limit_range_read(struct arena *arena, struct proto_reader object, struct kube_amounts *to);
bool kube_runtime_class_read(struct arena *arena, struct proto_reader object, struct kube_amounts *to);
