/* options.h - the command line of berth-kube, parsed by a table.
 *
 * To add an option: a field here and a row in options.c, which also serves as its help.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/log.h"
#include "kube/sched/profile.h"

struct kube_options {
    const char *kubeconfig, *context;
    const char *scheduler_name, *profile;
    const char *lease, *identity;
    const char *lease_duration, *renew_deadline, *retry_period;
    const char *listen, *log_name, *events_word;
    const char *journal, *journal_export;
    const char *webhook, *webhook_cert, *webhook_key, *unsure_word;
    bool no_lease, help, version;
    uint64_t connections, journal_days, journal_size;

    struct arena arena;            /* of the profiles */
    struct kube_profiles profiles; /* derived from the options above, as are these */
    int64_t lease_duration_ns, renew_deadline_ns, retry_period_ns;
    enum log_level log_level;
    bool events;
    bool deny_unchecked;
};

/* Parses the command line. -EINVAL with what is wrong. With --help or --version the rest is not checked. Call
 * kube_options_done in any case. */
int kube_options_read(int argc, char *const *argv, struct kube_options *ret, struct berth_err *err);
void kube_options_done(struct kube_options *o);
void kube_options_help(FILE *to);
