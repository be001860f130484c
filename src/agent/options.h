/* options.h - the command line of berth-agent, by a table.
 *
 * To add an option: a field here and a row in options.c, which is also its help.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/log.h"

/* Holds the invitation where neither --token-file nor --token is given. */
#define AGENT_TOKEN_VARIABLE "BERTH_JOIN_TOKEN"

struct agent_options {
    const char *verb;                                              /* "run" or "join" */
    const char *state, *control, *pin, *token, *token_file, *node; /* of a join */
    const char *log_name, *shim, *plugins, *cgroup_root, *cgroup, *reserve, *address, *nvml, *uplink, *bandwidth,
        *accounts_group, *network_user;
    bool accounts, all_syscalls, force, help, version, no_mps, no_user_namespaces;
    uint64_t uid_first, heartbeat_ms, log_mib, image_mib, image_max_mib, image_files;

    enum log_level log_level; /* made of the above */
    int64_t bandwidth_bytes;  /* a second; 0: not given */
};

/* -EINVAL with what is wrong. With --help or --version the rest is not checked. */
int agent_options_read(int argc, char *const *argv, struct agent_options *ret, struct berth_err *err);
void agent_options_help(FILE *to);
