/* bundle_config.h - generates config.json for an OCI runtime (specification 1.0) from an instance's configuration and
 * its image's configuration.
 *
 * A pure function without file access. Contains no resource limits: the agent applies them to its own cgroups
 * (machine/cgroup/cgroup.h).
 */
#pragma once

#include "machine/container/bundle_gate.h"

struct bundle_inputs {
    const json_t *config; /* the instance's configuration */
    const json_t *image;  /* the image's configuration; an empty object for a directory */
    const struct bundle_options *options;
    const struct container_ids *inside; /* with a user namespace; NULL: without */
    const struct bundle_gate *gate;     /* set together with `inside` */
    bool resolver, hosts;               /* the node has /etc/resolv.conf, /etc/hosts, which are mounted */
};

/* Returns a new object. -EINVAL: no program to run, or invalid values. */
int bundle_config(const struct bundle_inputs *words, json_t **ret, struct berth_err *err);
