#include "agent/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/flag.h"
#include "wire/text/quantity.h"

#define AT(field) offsetof(struct agent_options, field)
static const struct flag flags[] = {
    {"state",              FLAG_TEXT,   AT(state),              "DIR",     0,    0,          "folder of the agent's state; default: /var/lib/berth-agent"},
    {"control",            FLAG_TEXT,   AT(control),            "URLS",    0,    0,          "join: addresses of the daemon, separated by commas"        },
    {"pin",                FLAG_TEXT,   AT(pin),                "PIN",     0,    0,          "join: the daemon's key, as printed by 'berth node add'"    },
    {"token",              FLAG_TEXT,   AT(token),              "TOKEN",   0,    0,          NULL                                                        },
    {"token-file",         FLAG_TEXT,   AT(token_file),         "FILE",    0,    0,
     "join: file with the invitation, valid for one machine; - reads standard input"                                                                     },
    {"force",              FLAG_SWITCH, AT(force),              NULL,      0,    0,          "join: even if this machine has already joined"             },
    {"address",            FLAG_TEXT,   AT(address),            "ADDRESS", 0,    0,
     "join: address at which others reach this node; detected if not given"                                                                              },
    {"uplink",             FLAG_TEXT,   AT(uplink),             "DEVICE",  0,    0,
     "network device for network limits; default: that of the default route"                                                                             },
    {"bandwidth",          FLAG_TEXT,   AT(bandwidth),          "RATE",    0,    0,
     "capacity of the uplink in bytes per second, such as 125M; default: as the device reports"                                                          },
    {"plugins",            FLAG_TEXT,   AT(plugins),            "DIR",     0,    0,          "folder of programs that report further devices"            },
    {"reserve",            FLAG_TEXT,   AT(reserve),            "AMOUNTS", 0,    0,          "reserved for the system; default: cpu=100m,memory=256Mi"   },
    {"nvml",               FLAG_TEXT,   AT(nvml),               "FILE",    0,    0,          "library to query NVIDIA GPUs; default: libnvidia-ml.so.1"  },
    {"no-mps",             FLAG_SWITCH, AT(no_mps),             NULL,      0,    0,          "do not enforce GPU shares with NVIDIA's MPS"               },
    {"accounts",           FLAG_SWITCH, AT(accounts),           NULL,      0,    0,
     "run instances of an owner as the local account of the same name, if its UID is 1000 or more"                                                       },
    {"accounts-group",     FLAG_TEXT,   AT(accounts_group),     "GROUP",   0,    0,
     "with --accounts: only for members of this group; default: berth-accounts"                                                                          },
    {"all-syscalls",       FLAG_SWITCH, AT(all_syscalls),       NULL,      0,    0,
     "allow all system calls; otherwise namespaces, keys, bpf and others are refused"                                                                    },
    {"no-user-namespaces", FLAG_SWITCH, AT(no_user_namespaces), NULL,      0,    0,
     "run containers as their owner, not as the user that the image names"                                                                               },
    {"uid-first",          FLAG_COUNT,  AT(uid_first),          "N",       1000, 1800000000,
     "first UID for owners without a UID from the daemon; default: 200000"                                                                               },
    {"network-user",       FLAG_TEXT,   AT(network_user),       "ACCOUNT", 0,    0,
     "user of the net sandbox and of image downloads; default: 'berth-agent', or a UID of its own"                                                       },
    {"cgroup",             FLAG_TEXT,   AT(cgroup),             "NAME",    0,    0,          "control group of all instances; default: berth"            },
    {"cgroup-root",        FLAG_TEXT,   AT(cgroup_root),        "DIR",     0,    0,          "mount point of cgroups; default: /sys/fs/cgroup"           },
    {"log-mib",            FLAG_COUNT,  AT(log_mib),            "N",       1,    1000000,    "MiB of logs kept of ended instances; default: 1024"        },
    {"image-mib",          FLAG_COUNT,  AT(image_mib),          "N",       1,    100000000,  "MiB of images kept; default: 20480"                        },
    {"image-max-mib",      FLAG_COUNT,  AT(image_max_mib),      "N",       1,    100000000,
     "maximum MiB of one image on disk; default: 51200"                                                                                                  },
    {"image-files",        FLAG_COUNT,  AT(image_files),        "N",       1,    1000000000, "maximum files of one image; default: 2000000"              },
    {"heartbeat",          FLAG_COUNT,  AT(heartbeat_ms),       "MS",      100,  3600000,
     "interval of reports; default: a third of the daemon's lease"                                                                                       },
    {"shim",               FLAG_TEXT,   AT(shim),               "FILE",    0,    0,          "program berth-shim; default: beside this program"          },
    {"log-level",          FLAG_TEXT,   AT(log_name),           "LEVEL",   0,    0,          "debug, info, warn or error; default: info"                 },
    {"version",            FLAG_SWITCH, AT(version),            NULL,      0,    0,          "print the version"                                         },
    {"help",               FLAG_SWITCH, AT(help),               NULL,      0,    0,          "print this help"                                           },
};
#undef AT
enum { FLAGS = sizeof flags / sizeof *flags };

static int join_check(const struct agent_options *o, struct berth_err *err)
{
    if (!o->control || !o->pin || (!o->token && !o->token_file && !getenv(AGENT_TOKEN_VARIABLE)))
        return err_set(err, EINVAL,
                       "join needs --control, --pin and --token-file; 'berth node add NAME' prints the whole command");
    if (o->token && o->token_file)
        return err_set(err, EINVAL, "use either --token or --token-file");
    return 0;
}

static int options_check(struct agent_options *o, struct berth_err *err)
{
    int level = log_level_parse(o->log_name ? o->log_name : "info");
    bool join = strcmp(o->verb, "join") == 0;
    if (!join && strcmp(o->verb, "run") != 0)
        return err_set(err, EINVAL, "unknown command '%s'; see 'berth-agent --help'", o->verb);
    if (level < 0)
        return err_set(err, EINVAL, "--log-level must be debug, info, warn or error, not '%s'", o->log_name);
    o->log_level = (enum log_level)level;
    if (o->bandwidth &&
        (quantity_parse_text("network", o->bandwidth, &o->bandwidth_bytes, NULL) < 0 || o->bandwidth_bytes <= 0))
        return err_set(err, EINVAL, "--bandwidth must be bytes per second such as 125M, not '%s'", o->bandwidth);
    if (join)
        return join_check(o, err);
    if (o->control || o->pin || o->token || o->token_file || o->force)
        return err_set(err, EINVAL, "--control, --pin, --token-file and --force need 'berth-agent join'");
    if (o->address) /* reports do not change the address of a node */
        return err_set(err, EINVAL,
                       "--address needs 'berth-agent join'; after the join, change the address with 'berth edit node "
                       "NAME'");
    return 0;
}

int agent_options_read(int argc, char *const *argv, struct agent_options *ret, struct berth_err *err)
{
    bool verb = argc > 1 && argv[1][0] != '-';
    *ret = (struct agent_options){
        .verb = verb ? argv[1] : "run",
        .state = "/var/lib/berth-agent",
        .cgroup = "berth",
        .cgroup_root = "/sys/fs/cgroup",
        .accounts_group = "berth-accounts",
        .uid_first = 200000,
        .log_mib = 1024,
        .image_mib = 20480,
        .image_max_mib = 51200,
        .image_files = 2000000,
    };
    int rc = flags_read("berth-agent", flags, FLAGS, argc - verb, argv + verb, ret, err);
    if (rc < 0)
        return rc;
    return ret->help || ret->version ? 0 : options_check(ret, err);
}

void agent_options_help(FILE *to)
{
    (void)fprintf(to,
                  "berth-agent - runs this machine as a node of a Berth cluster.\n\n"
                  "usage: berth-agent join --control URLS --pin PIN --token-file FILE [OPTION...]\n"
                  "       berth-agent [run] [OPTION...]\n\n"
                  "'berth node add NAME' prints the join command. The invitation is read from a file, from standard\n"
                  "input (--token-file -) or from $" AGENT_TOKEN_VARIABLE
                  ". Afterwards 'berth-agent' runs the instances that\n"
                  "the daemon assigns to this node. They keep running when the agent is restarted.\n\n");
    flags_print(flags, FLAGS, to);
    (void)fprintf(to,
                  "\nRuns in the foreground. Prints 'ready NODE' on standard output when it is registered; logs to\n"
                  "standard error. SIGTERM and SIGINT stop the agent; instances keep running.\n"
                  "\nexit codes: 0 stopped by a signal, 1 failure, 2 invalid command line, 3 another agent runs as\n"
                  "this node\n");
}
