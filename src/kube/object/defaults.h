/* defaults.h - what the API server adds to the requests of new pods: defaults of the namespace's LimitRanges, and the
 * overhead of a RuntimeClass.
 *
 * Used to check a template before a pod of it exists; existing pods contain these values.
 */
#pragma once

#include "kube/object/meta.h"

extern const struct kube_field_filter kube_keep_limit_range, kube_keep_runtime_class;

/* v1.LimitRange: adds default container requests unless already there. v1.RuntimeClass: adds its overhead. Parse
 * objects without their envelope; false: malformed. */
bool kube_limit_range_read(struct arena *arena, struct proto_reader object, struct kube_amounts *to);
bool kube_runtime_class_read(struct arena *arena, struct proto_reader object, struct kube_amounts *to);
