#include "kube/options.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/flag.h"

#define AT(field) offsetof(struct kube_options, field)
static const struct flag flags[] = {
    {"kubeconfig",                  FLAG_TEXT,   AT(kubeconfig),     "FILE",         0,  0,
     "else $KUBECONFIG, the service account of the pod it runs in, or ~/.kube/config"                                                              },
    {"context",                     FLAG_TEXT,   AT(context),        "NAME",         0,  0,       "of the kubeconfig; its current one if not given"},
    {"scheduler-name",              FLAG_TEXT,   AT(scheduler_name), "NAMES",        0,  0,
     "pods whose schedulerName is one of these are placed; NAME=PROFILE: by a profile of its own; 'berth' if not given"                            },
    {"profile",                     FLAG_TEXT,   AT(profile),        "NAME",         0,  0,
     "which nodes are better, for names without one, see 'berth profiles'; 'default' if not given"                                                 },
    {"lease",                       FLAG_TEXT,   AT(lease),          "NS/NAME",      0,  0,
     "of the Lease by which one of several leads; kube-system/berth-kube if not given"                                                             },
    {"no-lease",                    FLAG_SWITCH, AT(no_lease),       NULL,           0,  0,       "lead at once: there is no other"                },
    {"identity",                    FLAG_TEXT,   AT(identity),       "NAME",         0,  0,
     "in the Lease; the host's name and something random if not given"                                                                             },
    {"leader-elect-lease-duration", FLAG_TEXT,   AT(lease_duration), "TIME",         0,  0,
     "in whole seconds: a Lease not renewed for so long is taken over; 15s if not given"                                                           },
    {"leader-elect-renew-deadline", FLAG_TEXT,   AT(renew_deadline), "TIME",         0,  0,
     "a leader whose last successful renewal was sent so long ago stops leading; 10s if not given"                                                 },
    {"leader-elect-retry-period",   FLAG_TEXT,   AT(retry_period),   "TIME",         0,  0,
     "between two renewals, or two attempts to lead; 2s if not given"                                                                              },
    {"events",                      FLAG_TEXT,   AT(events_word),    "WORD",         0,  0,
     "on: an Event for every pod that is placed or refused; off: none; on if not given"                                                            },
    {"connections",                 FLAG_COUNT,  AT(connections),    "N",            1,  1024,    "to the API server at a time; 32 if not given"   },
    {"listen",                      FLAG_TEXT,   AT(listen),         "ADDRESS:PORT", 0,  0,
     "answers /healthz, /readyz and /metrics there; nowhere if not given"                                                                          },
    {"webhook",                     FLAG_TEXT,   AT(webhook),        "ADDRESS:PORT", 0,  0,
     "judges objects of berth.dev there before the API server stores them; nowhere if not given"                                                   },
    {"webhook-cert",                FLAG_TEXT,   AT(webhook_cert),   "FILE",         0,  0,
     "its certificate in PEM, read again as it changes; see 'berth-kube webhook-cert --help'"                                                      },
    {"webhook-key",                 FLAG_TEXT,   AT(webhook_key),    "FILE",         0,  0,       "the key of that in PEM"                         },
    {"webhook-unsure",              FLAG_TEXT,   AT(unsure_word),    "WORD",         0,  0,
     "allow or deny what cannot be judged, as the cluster is not known yet; allow if not given"                                                    },
    {"journal",                     FLAG_TEXT,   AT(journal),        "DIR",          0,  0,
     "records there what is decided and from what; nowhere if not given. See 'berth-kube replay --help'"                                           },
    {"journal-days",                FLAG_COUNT,  AT(journal_days),   "N",            1,  36500,   "how old records may grow; 30 if not given"      },
    {"journal-size",                FLAG_COUNT,  AT(journal_size),   "MIB",          64, 1 << 24,
     "and how much of the disk they may take; 1024 if not given"                                                                                   },
    {"journal-export",              FLAG_TEXT,   AT(journal_export), "DIR",          0,  0,
     "records past that are copied there, and only then removed; just removed if not given"                                                        },
    {"log-level",                   FLAG_TEXT,   AT(log_name),       "LEVEL",        0,  0,       "debug, info, warn or error; info if not given"  },
    {"version",                     FLAG_SWITCH, AT(version),        NULL,           0,  0,       "print the version"                              },
    {"help",                        FLAG_SWITCH, AT(help),           NULL,           0,  0,       "print this"                                     },
};
#undef AT
enum { FLAGS = sizeof flags / sizeof *flags };

static int webhook_check(struct kube_options *o, struct berth_err *err)
{
    bool denies = strcmp(o->unsure_word, "deny") == 0;
    if (!denies && strcmp(o->unsure_word, "allow") != 0)
        return err_set(err, EINVAL, "--webhook-unsure is allow or deny, not '%s'", o->unsure_word);
    if (o->webhook && (!o->webhook_cert || !o->webhook_key))
        return err_set(err, EINVAL,
                       "--webhook needs --webhook-cert and --webhook-key: the API server asks with TLS only");
    if (!o->webhook && (o->webhook_cert || o->webhook_key))
        return err_set(err, EINVAL, "--webhook-cert and --webhook-key are for --webhook, which is missing");
    o->unsure_denies = denies;
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
            return err_set(err, EINVAL, "--leader-elect-%s is a time from 100ms to 60m such as 15s, not '%s'",
                           rows[i].name, rows[i].text);
        if (i > 0 && *rows[i].ret >= *rows[i - 1].ret)
            return err_set(err, EINVAL, "--leader-elect-%s (%s) must be shorter than --leader-elect-%s (%s)",
                           rows[i].name, rows[i].text, rows[i - 1].name, rows[i - 1].text);
    }
    if (o->lease_duration_ns % (1000 * MS_NS) != 0)
        return err_set(err, EINVAL, "--leader-elect-lease-duration is in whole seconds, not '%s'", o->lease_duration);
    return 0;
}

static int options_check(struct kube_options *o, struct berth_err *err)
{
    int level = log_level_parse(o->log_name ? o->log_name : "info");
    const char *slash = strchr(o->lease, '/');
    if (level < 0)
        return err_set(err, EINVAL, "--log-level is debug, info, warn or error, not '%s'", o->log_name);
    if (!slash || slash == o->lease || !slash[1] || strchr(slash + 1, '/'))
        return err_set(err, EINVAL, "--lease is a namespace and a name such as kube-system/berth-kube, not '%s'",
                       o->lease);
    if (lease_check(o, err) < 0)
        return -EINVAL;
    if (strcmp(o->events_word, "on") != 0 && strcmp(o->events_word, "off") != 0)
        return err_set(err, EINVAL, "--events is on or off, not '%s'", o->events_word);
    int rc = kube_profiles_read(o->scheduler_name, o->profile, &o->arena, &o->profiles, err);
    if (rc < 0)
        return rc;
    o->log_level = (enum log_level)level;
    o->events = strcmp(o->events_word, "on") == 0;
    if (o->journal_export && !o->journal)
        return err_set(err, EINVAL, "--journal-export is for --journal, which is missing");
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
    (void)fprintf(to, "berth-kube - places the pods of a Kubernetes cluster.\n\n"
                      "usage: berth-kube [OPTION...]\n"
                      "       berth-kube webhook-cert --help     makes a certificate for --webhook\n"
                      "       berth-kube report-node --help      labels a node with its GPUs\n"
                      "       berth-kube replay --help           makes the plans of a --journal again\n\n");
    flags_print(flags, FLAGS, to);
    (void)fprintf(
        to,
        "\nRuns in the foreground. Prints 'ready' on standard output once it knows the cluster, and 'leads' when it\n"
        "begins to decide; logs to standard error. SIGTERM and SIGINT end it; pods that were placed stay.\n"
        "\nexample:\n  berth-kube --kubeconfig ~/.kube/config --scheduler-name berth,berth-pack=pack\n"
        "\nexit codes: 0 ended as asked, 1 failure, 2 the command line is wrong\n");
}
