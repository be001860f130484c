/* options.h - command-line options of berth-agent, defined by a table.
 *
 * To add an option: a field here and a row in options.c, from which --help is printed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/log.h"

/* Environment variable with the join token; used if neither --token-file nor --token is given. */
#define AGENT_TOKEN_VARIABLE "BERTH_JOIN_TOKEN"

struct agent_options {
    const char *verb;                                              /* "run" or "join" */
    const char *state, *control, *pin, *token, *token_file, *node; /* state also for run; the others for join */
    const char *log_name, *shim, *plugins, *cgroup_root, *cgroup, *reserve, *address, *nvml, *uplink, *bandwidth,
        *accounts_group, *network_user;
    bool accounts, all_syscalls, force, help, version, no_mps, no_user_namespaces;
    uint64_t uid_first, heartbeat_ms, log_mib, image_mib, image_max_mib, image_files;

    enum log_level log_level; /* parsed from log_name */
    int64_t bandwidth_bytes;  /* bytes a second, parsed from bandwidth; 0: not given */
};

/* Parses and checks the options. -EINVAL with the reason in `err`. With --help or --version the other options are not
 * checked. */
int agent_options_read(int argc, char *const *argv, struct agent_options *ret, struct berth_err *err);
void agent_options_help(FILE *to);
