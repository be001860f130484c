#include "agent/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/flag.h"
#include "wire/text/quantity.h"

#define AT(field) offsetof(struct agent_options, field)
static const struct flag flags[] = {
    {"state",              FLAG_TEXT,   AT(state),              "DIR",     0,    0,
     "where it keeps what it must remember; /var/lib/berth-agent if not given"                                                                              },
    {"control",            FLAG_TEXT,   AT(control),            "URLS",    0,    0,          "join: where the daemon is; several with commas between them"  },
    {"pin",                FLAG_TEXT,   AT(pin),                "PIN",     0,    0,          "join: the daemon's key, as 'berth node add' printed it"       },
    {"token",              FLAG_TEXT,   AT(token),              "TOKEN",   0,    0,          NULL                                                           },
    {"token-file",         FLAG_TEXT,   AT(token_file),         "FILE",    0,    0,
     "join: the invitation, good for one machine; - reads it from standard input"                                                                           },
    {"force",              FLAG_SWITCH, AT(force),              NULL,      0,    0,          "join: even if this machine is a node already"                 },
    {"address",            FLAG_TEXT,   AT(address),            "ADDRESS", 0,    0,
     "join: where others reach what runs here; found out if not given"                                                                                      },
    {"uplink",             FLAG_TEXT,   AT(uplink),             "DEVICE",  0,    0,
     "the network device whose limits it keeps; that of the default route if not given"                                                                     },
    {"bandwidth",          FLAG_TEXT,   AT(bandwidth),          "RATE",    0,    0,
     "what that carries each way in bytes a second, like 125M; as the device says if not given"                                                             },
    {"plugins",            FLAG_TEXT,   AT(plugins),            "DIR",     0,    0,          "programs that tell of further devices"                        },
    {"reserve",            FLAG_TEXT,   AT(reserve),            "AMOUNTS", 0,    0,          "kept for the system; cpu=100m,memory=256Mi if not given"      },
    {"nvml",               FLAG_TEXT,   AT(nvml),               "FILE",    0,    0,
     "the library that tells of NVIDIA GPUs; libnvidia-ml.so.1 if not given"                                                                                },
    {"no-mps",             FLAG_SWITCH, AT(no_mps),             NULL,      0,    0,          "shares of GPUs are watched only, not enforced by NVIDIA's MPS"},
    {"accounts",           FLAG_SWITCH, AT(accounts),           NULL,      0,    0,
     "owners run as the account of the same name, where there is one; its number is 1000 or more"                                                           },
    {"accounts-group",     FLAG_TEXT,   AT(accounts_group),     "GROUP",   0,    0,
     "with --accounts: only members of this group run as their accounts; berth-accounts if not given"                                                       },
    {"all-syscalls",       FLAG_SWITCH, AT(all_syscalls),       NULL,      0,    0,
     "instances may ask anything of the kernel; else namespaces, keys, bpf and others are refused"                                                          },
    {"no-user-namespaces", FLAG_SWITCH, AT(no_user_namespaces), NULL,      0,    0,
     "containers run as their owner, whatever user their image names"                                                                                       },
    {"uid-first",          FLAG_COUNT,  AT(uid_first),          "N",       1000, 1800000000,
     "first of the numbers for owners who have none from the daemon; 200000 if not given"                                                                   },
    {"network-user",       FLAG_TEXT,   AT(network_user),       "ACCOUNT", 0,    0,
     "whom its network half and what fetches images run as; 'berth-agent', or a number of its own if there is none"                                         },
    {"cgroup",             FLAG_TEXT,   AT(cgroup),             "NAME",    0,    0,          "of the group that all instances are in; berth if not given"   },
    {"cgroup-root",        FLAG_TEXT,   AT(cgroup_root),        "DIR",     0,    0,          "where groups are; /sys/fs/cgroup if not given"                },
    {"log-mib",            FLAG_COUNT,  AT(log_mib),            "N",       1,    1000000,    "of logs kept after their instances; 1024 if not given"        },
    {"image-mib",          FLAG_COUNT,  AT(image_mib),          "N",       1,    100000000,  "of images kept; 20480 if not given"                           },
    {"image-max-mib",      FLAG_COUNT,  AT(image_max_mib),      "N",       1,    100000000,
     "that one image may take on disk; 51200 if not given"                                                                                                  },
    {"image-files",        FLAG_COUNT,  AT(image_files),        "N",       1,    1000000000, "that one image may have; 2000000 if not given"                },
    {"heartbeat",          FLAG_COUNT,  AT(heartbeat_ms),       "MS",      100,  3600000,
     "between reports; a third of the daemon's lease if not given"                                                                                          },
    {"shim",               FLAG_TEXT,   AT(shim),               "FILE",    0,    0,          "the program berth-shim, if it is not beside this one"         },
    {"log-level",          FLAG_TEXT,   AT(log_name),           "LEVEL",   0,    0,          "debug, info, warn or error; info if not given"                },
    {"version",            FLAG_SWITCH, AT(version),            NULL,      0,    0,          "print the version"                                            },
    {"help",               FLAG_SWITCH, AT(help),               NULL,      0,    0,          "print this"                                                   },
};
#undef AT
enum { FLAGS = sizeof flags / sizeof *flags };

static int join_check(const struct agent_options *o, struct berth_err *err)
{
    if (!o->control || !o->pin || (!o->token && !o->token_file && !getenv(AGENT_TOKEN_VARIABLE)))
        return err_set(err, EINVAL,
                       "join needs --control, --pin and --token-file; 'berth node add NAME' prints the whole line");
    if (o->token && o->token_file)
        return err_set(err, EINVAL, "give either --token or --token-file");
    return 0;
}

static int options_check(struct agent_options *o, struct berth_err *err)
{
    int level = log_level_parse(o->log_name ? o->log_name : "info");
    bool join = strcmp(o->verb, "join") == 0;
    if (!join && strcmp(o->verb, "run") != 0)
        return err_set(err, EINVAL, "berth-agent knows 'join' and 'run', not '%s'; see 'berth-agent --help'", o->verb);
    if (level < 0)
        return err_set(err, EINVAL, "--log-level is debug, info, warn or error, not '%s'", o->log_name);
    o->log_level = (enum log_level)level;
    if (o->bandwidth &&
        (quantity_parse_text("network", o->bandwidth, &o->bandwidth_bytes, NULL) < 0 || o->bandwidth_bytes <= 0))
        return err_set(err, EINVAL, "--bandwidth is bytes a second, like 125M, not '%s'", o->bandwidth);
    if (join)
        return join_check(o, err);
    if (o->control || o->pin || o->token || o->token_file || o->force)
        return err_set(err, EINVAL, "--control, --pin, --token-file and --force are for 'berth-agent join'");
    if (o->address) /* reports do not change the address of a node */
        return err_set(err, EINVAL,
                       "--address is for 'berth-agent join'; of a node that has joined, 'berth edit node NAME' changes "
                       "the address");
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
    (void)fprintf(
        to, "berth-agent - makes this machine a node of a Berth cluster.\n\n"
            "usage: berth-agent join --control URLS --pin PIN --token-file FILE [OPTION...]\n"
            "       berth-agent [run] [OPTION...]\n\n"
            "'berth node add NAME' prints the line that joins. The invitation is read from a file, from standard\n"
            "input (--token-file -) or from $" AGENT_TOKEN_VARIABLE ". Afterwards 'berth-agent' runs what the daemon\n"
            "wants here, and nothing else. What runs goes on when the agent is restarted.\n\n");
    flags_print(flags, FLAGS, to);
    (void)fprintf(to,
                  "\nRuns in the foreground. Prints 'ready NODE' on standard output when the daemon knows it; logs\n"
                  "to standard error. SIGTERM and SIGINT end the agent, not what it runs.\n"
                  "\nexit codes: 0 ended as asked, 1 failure, 2 the command line is wrong, 3 another agent speaks\n"
                  "for this node\n");
}
