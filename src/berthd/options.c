#include "berthd/options.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/flag.h"
#include "base/str.h"

#define AT(field) offsetof(struct daemon_options, field)
static const struct flag flags[] = {
    {"data",                        FLAG_TEXT,   AT(data),                        "DIR",       0, 0,          "data folder; required"                                      },
    {"listen",                      FLAG_TEXT,   AT(listen),                      "ADDR:PORT", 0, 0,          "default: 127.0.0.1:3980; port 0: any free port"             },
    {"agents",                      FLAG_TEXT,   AT(agents),                      "ADDR:PORT", 0, 0,
     "address for agents, with mutual TLS; default: the address of --listen and its port + 1; none: no agents"                                                             },
    {"name",                        FLAG_TEXT,   AT(names),                       "NAME,...",  0, 0,
     "names and addresses of this machine in the certificate for agents; agents use the first"                                                                             },
    {"init",                        FLAG_SWITCH, AT(init),                        NULL,        0, 0,          "create a cluster if the folder has none"                    },
    {"token-file",                  FLAG_TEXT,   AT(token_file),                  "FILE",      0, 0,
     "file for the administrator's token from --init; default: DIR/admin.token"                                                                                            },
    {"config",                      FLAG_TEXT,   AT(config),                      "FILE",      0, 0,
     "configuration file, owned by root, with the programs that berthd runs; default: /etc/berth/berthd.conf"                                                              },
    {"tls",                         FLAG_SWITCH, AT(tls),                         NULL,        0, 0,          "serve HTTPS with a generated certificate in the data folder"},
    {"tls-cert",                    FLAG_TEXT,   AT(tls_cert),                    "FILE",      0, 0,          "serve HTTPS with this certificate (chain) ..."              },
    {"tls-key",                     FLAG_TEXT,   AT(tls_key),                     "FILE",      0, 0,          "... and its key"                                            },
    {"new-secret-key",              FLAG_SWITCH, AT(new_secret_key),              NULL,        0, 0,
     "start although secret.key cannot decrypt the secrets: they must be set again"                                                                                        },
    {"log-level",                   FLAG_TEXT,   AT(log_name),                    "LEVEL",     0, 0,          "debug, info, warn or error; default: info"                  },
    {"lease",                       FLAG_COUNT,  AT(lease_s),                     "SECONDS",   1, 86400,
     "seconds without a report after which a node is lost; default: 30"                                                                                                    },
    {"audit-every",                 FLAG_COUNT,  AT(audit_every),                 "N",         1, 1000000000,
     "check all counters every N cycles; default: never"                                                                                                                   },
    {"requests-per-second",         FLAG_COUNT,  AT(requests_per_s),              "N",         1, 1000000000,
     "requests per second of one user, including administrators; default: the setting"                                                                                     },
    {"max-connections",             FLAG_COUNT,  AT(connections_max),             "N",         1, 1000000,
     "maximum concurrent connections; default: 16384"                                                                                                                      },
    {"max-connections-per-address", FLAG_COUNT,  AT(connections_per_address_max), "N",         1, 1000000,
     "maximum connections without a client certificate; default: 1024"                                                                                                     },
    {"version",                     FLAG_SWITCH, AT(version),                     NULL,        0, 0,          "print the version"                                          },
    {"help",                        FLAG_SWITCH, AT(help),                        NULL,        0, 0,
     "print "
     "this "
     "help"                                                                                                                                                                },
};
#undef AT
enum { FLAGS = sizeof flags / sizeof *flags };

/* ---- parse and check -------------------------------------------------------------------------------------------- */

/* By default agents are served at the main address and the next port; port 0 is any free port. */
static int agents_check(struct daemon_options *o, struct berth_err *err)
{
    if (o->agents && strcmp(o->agents, "none") == 0)
        return o->names ? err_set(err, EINVAL, "--name applies only to agents, but --agents is none") : 0;
    if (o->agents && strchr(o->agents, ':') == NULL)
        return err_set(err, EINVAL, "--agents: expected ADDRESS:PORT, such as 0.0.0.0:3981, or none; not '%s'",
                       o->agents);
    if (o->agents) {
        int rc = listen_parse(o->agents, PORT_DEFAULT, o->agents_host, &o->agents_port, err);
        return rc < 0 ? err_prefix(err, "--agents") : 0;
    }
    memcpy(o->agents_host, o->host, sizeof o->agents_host);
    o->agents_port = o->port == 0 || o->port == UINT16_MAX ? 0 : (uint16_t)(o->port + 1);
    return 0;
}

static int options_check(struct daemon_options *o, struct berth_err *err)
{
    int level = log_level_parse(o->log_name ? o->log_name : "info");

    if (!o->data)
        return err_set(err, EINVAL, "--data DIR is required: the data folder");
    if (level < 0)
        return err_set(err, EINVAL, "--log-level: expected debug, info, warn or error, not '%s'", o->log_name);
    o->log_level = (enum log_level)level;
    if (!o->tls_cert != !o->tls_key)
        return err_set(err, EINVAL, "--tls-cert and --tls-key must be given together; use --tls to generate them");
    if (o->tls && o->tls_cert)
        return err_set(err, EINVAL, "give either --tls, to generate a certificate, or --tls-cert and --tls-key");
    if (o->token_file && !o->init)
        return err_set(err, EINVAL, "--token-file requires --init");
    int rc = listen_parse(o->listen ? o->listen : "127.0.0.1", PORT_DEFAULT, o->host, &o->port, err);
    if (rc < 0)
        return err_prefix(err, "--listen");
    if (!host_is_loopback(o->host) && !o->tls && !o->tls_cert)
        return err_set(
            err, EINVAL,
            "tokens would be sent unencrypted: add --tls (or --tls-cert and --tls-key) to listen on %s, or listen "
            "on 127.0.0.1",
            o->host);
    return agents_check(o, err);
}

int daemon_options_read(int argc, char *const *argv, struct daemon_options *ret, struct berth_err *err)
{
    *ret = (struct daemon_options){0};
    int rc = flags_read("berthd", flags, FLAGS, argc, argv, ret, err);
    if (rc < 0)
        return rc;
    return ret->help || ret->version ? 0 : options_check(ret, err);
}

void daemon_options_help(FILE *to)
{
    (void)fprintf(to, "berthd - schedules services, jobs and virtual machines on nodes; the daemon of "
                      "Berth.\n\nusage: berthd --data DIR [OPTION...]\n\n");
    flags_print(flags, FLAGS, to);
    (void)fprintf(to,
                  "\nRuns in the foreground. Prints one line, 'ready URL', on standard output when it serves; logs to\n"
                  "standard error. SIGTERM and SIGINT end it in good order within 5 s, a second one at once.\n"
                  "\nfirst start:\n  berthd --data /var/lib/berth --init --token-file admin.token\n"
                  "\nexit codes: 0 ended as asked, 1 failure, 2 the command line is wrong\n");
}
