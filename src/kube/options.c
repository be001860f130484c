#include "kube/options.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/flag.h"

#define AT(field) offsetof(struct kube_options, field)
static const struct flag flags[] = {
    {"kubeconfig",     FLAG_TEXT,   AT(kubeconfig),     "FILE",         0,  0,
     "else $KUBECONFIG, the service account of the pod it runs in, or ~/.kube/config"                                                 },
    {"context",        FLAG_TEXT,   AT(context),        "NAME",         0,  0,       "of the kubeconfig; its current one if not given"},
    {"scheduler-name", FLAG_TEXT,   AT(scheduler_name), "NAMES",        0,  0,
     "pods whose schedulerName is one of these are placed; NAME=PROFILE: by a profile of its own; 'berth' if not given"               },
    {"profile",        FLAG_TEXT,   AT(profile),        "NAME",         0,  0,
     "which nodes are better, for names without one, see 'berth profiles'; 'default' if not given"                                    },
    {"lease",          FLAG_TEXT,   AT(lease),          "NS/NAME",      0,  0,
     "of the Lease by which one of several leads; kube-system/berth-kube if not given"                                                },
    {"no-lease",       FLAG_SWITCH, AT(no_lease),       NULL,           0,  0,       "lead at once: there is no other"                },
    {"identity",       FLAG_TEXT,   AT(identity),       "NAME",         0,  0,
     "in the Lease; the host's name and something random if not given"                                                                },
    {"events",         FLAG_TEXT,   AT(events_word),    "WORD",         0,  0,
     "on: an Event for every pod that is placed or refused; off: none; on if not given"                                               },
    {"connections",    FLAG_COUNT,  AT(connections),    "N",            1,  1024,    "to the API server at a time; 32 if not given"   },
    {"listen",         FLAG_TEXT,   AT(listen),         "ADDRESS:PORT", 0,  0,
     "answers /healthz, /readyz and /metrics there; nowhere if not given"                                                             },
    {"webhook",        FLAG_TEXT,   AT(webhook),        "ADDRESS:PORT", 0,  0,
     "judges objects of berth.dev there before the API server stores them; nowhere if not given"                                      },
    {"webhook-cert",   FLAG_TEXT,   AT(webhook_cert),   "FILE",         0,  0,
     "its certificate in PEM, read again as it changes; see 'berth-kube webhook-cert --help'"                                         },
    {"webhook-key",    FLAG_TEXT,   AT(webhook_key),    "FILE",         0,  0,       "the key of that in PEM"                         },
    {"webhook-unsure", FLAG_TEXT,   AT(unsure_word),    "WORD",         0,  0,
     "allow or deny what cannot be judged, as the cluster is not known yet; allow if not given"                                       },
    {"journal",        FLAG_TEXT,   AT(journal),        "DIR",          0,  0,
     "records there what is decided and from what; nowhere if not given. See 'berth-kube replay --help'"                              },
    {"journal-days",   FLAG_COUNT,  AT(journal_days),   "N",            1,  36500,   "how old records may grow; 30 if not given"      },
    {"journal-size",   FLAG_COUNT,  AT(journal_size),   "MIB",          64, 1 << 24,
     "and how much of the disk they may take; 1024 if not given"                                                                      },
    {"journal-export", FLAG_TEXT,   AT(journal_export), "DIR",          0,  0,
     "records past that are copied there, and only then removed; just removed if not given"                                           },
    {"log-level",      FLAG_TEXT,   AT(log_name),       "LEVEL",        0,  0,       "debug, info, warn or error; info if not given"  },
    {"version",        FLAG_SWITCH, AT(version),        NULL,           0,  0,       "print the version"                              },
    {"help",           FLAG_SWITCH, AT(help),           NULL,           0,  0,       "print this"                                     },
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

static int options_check(struct kube_options *o, struct berth_err *err)
{
    int level = log_level_parse(o->log_name ? o->log_name : "info");
    const char *slash = strchr(o->lease, '/');
    if (level < 0)
        return err_set(err, EINVAL, "--log-level is debug, info, warn or error, not '%s'", o->log_name);
    if (!slash || slash == o->lease || !slash[1] || strchr(slash + 1, '/'))
        return err_set(err, EINVAL, "--lease is a namespace and a name such as kube-system/berth-kube, not '%s'",
                       o->lease);
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
