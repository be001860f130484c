#include "kube/options.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/flag.h"

#define AT(field) offsetof(struct kube_options, field)
static const struct flag flags[] = {
    {"kubeconfig",                  FLAG_TEXT,   AT(kubeconfig),     "FILE",         0,  0,
     "default: $KUBECONFIG, then the pod's service account, then ~/.kube/config"                                                                  },
    {"context",                     FLAG_TEXT,   AT(context),        "NAME",         0,  0,       "default: the current context of the kubeconfig"},
    {"scheduler-name",              FLAG_TEXT,   AT(scheduler_name), "NAMES",        0,  0,
     "schedulerName of the pods to schedule; NAME=PROFILE uses this profile; default: 'berth'"                                                    },
    {"profile",                     FLAG_TEXT,   AT(profile),        "NAME",         0,  0,
     "scoring profile of names without one; see 'berth profiles'; default: 'default'"                                                             },
    {"lease",                       FLAG_TEXT,   AT(lease),          "NS/NAME",      0,  0,       "Lease; default: kube-system/berth-kube"        },
    {"no-lease",                    FLAG_SWITCH, AT(no_lease),       NULL,           0,  0,       "lead without leader election"                  },
    {"identity",                    FLAG_TEXT,   AT(identity),       "NAME",         0,  0,
     "identity in the Lease; default: the host name and a random suffix"                                                                          },
    {"leader-elect-lease-duration", FLAG_TEXT,   AT(lease_duration), "TIME",         0,  0,
     "time in whole seconds after which an unrenewed Lease may be taken over; default: 15s"                                                       },
    {"leader-elect-renew-deadline", FLAG_TEXT,   AT(renew_deadline), "TIME",         0,  0,
     "time without a successful renewal after which a leader stops leading; default: 10s"                                                         },
    {"leader-elect-retry-period",   FLAG_TEXT,   AT(retry_period),   "TIME",         0,  0,
     "interval of renewals and of attempts to lead; default: 2s"                                                                                  },
    {"events",                      FLAG_TEXT,   AT(events_word),    "WORD",         0,  0,
     "on: write an Event for every pod that is placed or cannot be placed; off: none; default: on"                                                },
    {"connections",                 FLAG_COUNT,  AT(connections),    "N",            1,  1024,    "connections to the API server; default: 32"    },
    {"listen",                      FLAG_TEXT,   AT(listen),         "ADDRESS:PORT", 0,  0,
     "serve /healthz, /readyz and /metrics at this address; default: off"                                                                         },
    {"webhook",                     FLAG_TEXT,   AT(webhook),        "ADDRESS:PORT", 0,  0,
     "serve an admission webhook for objects of berth.dev at this address; default: off"                                                          },
    {"webhook-cert",                FLAG_TEXT,   AT(webhook_cert),   "FILE",         0,  0,
     "PEM certificate of the webhook, reloaded on changes; see 'berth-kube webhook-cert --help'"                                                  },
    {"webhook-key",                 FLAG_TEXT,   AT(webhook_key),    "FILE",         0,  0,       "PEM key of the webhook"                        },
    {"webhook-unsure",              FLAG_TEXT,   AT(unsure_word),    "WORD",         0,  0,
     "allow or deny objects while the cluster is not loaded; default: allow"                                                                      },
    {"journal",                     FLAG_TEXT,   AT(journal),        "DIR",          0,  0,
     "record decisions and their inputs in this folder; see 'berth-kube replay --help'; default: off"                                             },
    {"journal-days",                FLAG_COUNT,  AT(journal_days),   "N",            1,  36500,   "maximum age of records in days; default: 30"   },
    {"journal-size",                FLAG_COUNT,  AT(journal_size),   "MIB",          64, 1 << 24,
     "maximum size of the records on disk; default: 1024"                                                                                         },
    {"journal-export",              FLAG_TEXT,   AT(journal_export), "DIR",          0,  0,
     "copy expired records to this folder before they are removed; default: off"                                                                  },
    {"log-level",                   FLAG_TEXT,   AT(log_name),       "LEVEL",        0,  0,       "debug, info, warn or error; default: info"     },
    {"version",                     FLAG_SWITCH, AT(version),        NULL,           0,  0,       "print the version"                             },
    {"help",                        FLAG_SWITCH, AT(help),           NULL,           0,  0,       "print this help"                               },
};
#undef AT
enum { FLAGS = sizeof flags / sizeof *flags };

static int webhook_check(struct kube_options *o, struct berth_err *err)
{
    bool denies = strcmp(o->unsure_word, "deny") == 0;
    if (!denies && strcmp(o->unsure_word, "allow") != 0)
        return err_set(err, EINVAL, "--webhook-unsure must be allow or deny, not '%s'", o->unsure_word);
    if (o->webhook && (!o->webhook_cert || !o->webhook_key))
        return err_set(err, EINVAL,
                       "--webhook needs --webhook-cert and --webhook-key: the API server calls webhooks with TLS only");
    if (!o->webhook && (o->webhook_cert || o->webhook_key))
        return err_set(err, EINVAL, "--webhook-cert and --webhook-key need --webhook");
    o->deny_unchecked = denies;
    return 0;
}

#define MS_NS INT64_C(1000000)
#define LEASE_NS_MAX (INT64_C(3600) * 1000 * MS_NS)

/* Parses a number with a unit: "15s", "500ms", "2m"; without a unit in seconds. -1: it is neither. */
static int64_t duration_parse(const char *text)
{
    static const struct {
        const char *unit;
        int64_t ns;
    } units[] = {
        {"",   1000 * MS_NS     },
        {"ms", MS_NS            },
        {"s",  1000 * MS_NS     },
        {"m",  60 * 1000 * MS_NS},
    };
    size_t digits = strspn(text, "0123456789");
    int64_t value = 0;
    if (digits == 0 || digits > 7)
        return -1;
    for (size_t i = 0; i < digits; i++)
        value = value * 10 + (text[i] - '0');
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(text + digits, units[i].unit) == 0)
            return value * units[i].ns;
    return -1;
}

/* The lease duration exceeds the renew deadline, and the deadline allows more than one try. */
static int lease_check(struct kube_options *o, struct berth_err *err)
{
    const struct {
        const char *name, *text;
        int64_t *ret;
    } rows[] = {
        {"lease-duration", o->lease_duration, &o->lease_duration_ns},
        {"renew-deadline", o->renew_deadline, &o->renew_deadline_ns},
        {"retry-period",   o->retry_period,   &o->retry_period_ns  },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *rows[i].ret = duration_parse(rows[i].text);
        if (*rows[i].ret < 100 * MS_NS || *rows[i].ret > LEASE_NS_MAX)
            return err_set(err, EINVAL, "--leader-elect-%s must be a duration from 100ms to 60m such as 15s, not '%s'",
                           rows[i].name, rows[i].text);
        if (i > 0 && *rows[i].ret >= *rows[i - 1].ret)
            return err_set(err, EINVAL, "--leader-elect-%s (%s) must be shorter than --leader-elect-%s (%s)",
                           rows[i].name, rows[i].text, rows[i - 1].name, rows[i - 1].text);
    }
    if (o->lease_duration_ns % (1000 * MS_NS) != 0)
        return err_set(err, EINVAL, "--leader-elect-lease-duration must be in whole seconds, not '%s'",
                       o->lease_duration);
    return 0;
}

static int options_check(struct kube_options *o, struct berth_err *err)
{
    int level = log_level_parse(o->log_name ? o->log_name : "info");
    const char *slash = strchr(o->lease, '/');
    if (level < 0)
        return err_set(err, EINVAL, "--log-level must be debug, info, warn or error, not '%s'", o->log_name);
    if (!slash || slash == o->lease || !slash[1] || strchr(slash + 1, '/'))
        return err_set(err, EINVAL, "--lease must be NAMESPACE/NAME such as kube-system/berth-kube, not '%s'",
                       o->lease);
    if (lease_check(o, err) < 0)
        return -EINVAL;
    if (strcmp(o->events_word, "on") != 0 && strcmp(o->events_word, "off") != 0)
        return err_set(err, EINVAL, "--events must be on or off, not '%s'", o->events_word);
    int rc = kube_profiles_read(o->scheduler_name, o->profile, &o->arena, &o->profiles, err);
    if (rc < 0)
        return rc;
    o->log_level = (enum log_level)level;
    o->events = strcmp(o->events_word, "on") == 0;
    if (o->journal_export && !o->journal)
        return err_set(err, EINVAL, "--journal-export needs --journal");
    return webhook_check(o, err);
}

int kube_options_read(int argc, char *const *argv, struct kube_options *ret, struct berth_err *err)
{
    *ret = (struct kube_options){
        .scheduler_name = "berth",
        .profile = "default",
        .lease = "kube-system/berth-kube",
        .lease_duration = "15s",
        .renew_deadline = "10s",
        .retry_period = "2s",
        .events_word = "on",
        .unsure_word = "allow",
        .connections = 32,
        .journal_days = 30,
        .journal_size = 1024,
    };
    arena_init(&ret->arena);
    int rc = flags_read("berth-kube", flags, FLAGS, argc, argv, ret, err);
    return rc < 0 || ret->help || ret->version ? rc : options_check(ret, err);
}

void kube_options_done(struct kube_options *o)
{
    arena_done(&o->arena);
}

void kube_options_help(FILE *to)
{
    (void)fprintf(to, "berth-kube - schedules the pods of a Kubernetes cluster.\n\n"
                      "usage: berth-kube [OPTION...]\n"
                      "       berth-kube webhook-cert --help     creates a certificate for --webhook\n"
                      "       berth-kube report-node --help      labels a node with its GPUs\n"
                      "       berth-kube replay --help           recomputes the plans of a --journal\n\n");
    flags_print(flags, FLAGS, to);
    (void)fprintf(
        to,
        "\nRuns in the foreground. Prints 'ready' on standard output when the cluster is loaded, and 'leads' when it "
        "becomes\n"
        "the leader; logs to standard error. SIGTERM and SIGINT stop it; placed pods keep running.\n"
        "\nexample:\n  berth-kube --kubeconfig ~/.kube/config --scheduler-name berth,berth-pack=pack\n"
        "\nexit codes: 0 stopped by a signal, 1 failure, 2 invalid command line\n");
}
