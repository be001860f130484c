/* bundle_config.h - config.json of an OCI runtime (specification 1.0), from an instance's object and its image's words.
 *
 * A pure function: no file is looked at. Limits are the agent's own groups' (machine/cgroup/cgroup.h): none is in it.
 */
#pragma once

#include "machine/container/bundle_gate.h"

struct bundle_words {
    const json_t *config; /* the instance's object */
    const json_t *image;  /* what the image says of itself; an empty object for a folder */
    const struct bundle_options *options;
    const struct inside *inside; /* in a user namespace; NULL: in none */
    const struct gate *gate;     /* with it */
    bool resolver, hosts;        /* the node has /etc/resolv.conf, /etc/hosts: names are resolved as on the node */
};

/* A new object. -EINVAL: no program to run, or words that make no sense. */
int bundle_config(const struct bundle_words *words, json_t **ret, struct berth_err *err);
