#include "berthd/options.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WORDS_MAX = 12 };

/* Splits a line at spaces and parses it; '' is an empty word. */
static int words_read(const char *line, struct daemon_options *ret, struct berth_err *err)
{
    static char text[512];
    char *argv[WORDS_MAX + 1] = {"berthd"};
    int argc = 1;

    (void)snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word && argc < WORDS_MAX; word = strtok(NULL, " "))
        argv[argc++] = strcmp(word, "''") == 0 ? "" : word;
    return daemon_options_read(argc, argv, ret, err);
}

static void options_are_parsed(void **state)
{
    (void)state;
    struct daemon_options o;

    assert_int_equal(words_read("--data /d", &o, NULL), 0);
    assert_string_equal(o.data, "/d");
    assert_string_equal(o.host, "127.0.0.1");
    assert_int_equal(o.port, 3980);
    assert_int_equal(o.log_level, LEVEL_INFO);
    assert_false(o.init || o.tls || o.tls_cert || o.token_file);
    assert_int_equal(o.lease_s, 0);

    assert_int_equal(words_read("--data=/d --init --token-file=/t --listen [::1]:0 --log-level debug --lease 5 "
                                "--audit-every=7",
                                &o, NULL),
                     0);
    assert_true(o.init);
    assert_string_equal(o.token_file, "/t");
    assert_string_equal(o.host, "::1");
    assert_int_equal(o.port, 0);
    assert_int_equal(o.log_level, LEVEL_DEBUG);
    assert_int_equal(o.lease_s, 5);
    assert_int_equal(o.audit_every, 7);

    assert_int_equal(
        words_read("--data /d --requests-per-second 9 --max-connections 3 --listen 0.0.0.0:80 --tls", &o, NULL), 0);
    assert_int_equal(o.requests_per_s, 9);
    assert_int_equal(o.connections_max, 3);
    assert_true(o.tls);
    assert_int_equal(words_read("--data /d --tls-cert c --tls-key k --listen [::]:80", &o, NULL), 0);
    assert_string_equal(o.tls_cert, "c");
    assert_string_equal(o.tls_key, "k");
}

/* By default agents are served beside the main address. */
static void agents_address_has_a_default(void **state)
{
    (void)state;
    static const struct {
        const char *line, *host;
        uint16_t port;
    } rows[] = {
        {"--data /d",                                                 "127.0.0.1", 3981},
        {"--data /d --listen [::1]:80",                               "::1",       81  },
        {"--data /d --listen 127.0.0.1:0",                            "127.0.0.1", 0   },
        {"--data /d --listen 127.0.0.1:65535",                        "127.0.0.1", 0   },
        {"--data /d --agents none",                                   "",          0   },
        {"--data /d --agents 0.0.0.0:4000 --name head,10.0.0.1",      "0.0.0.0",   4000},
        {"--data /d --listen 0.0.0.0:80 --tls --agents 127.0.0.1:81", "127.0.0.1", 81  },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct daemon_options o;
        assert_int_equal(words_read(rows[i].line, &o, NULL), 0);
        assert_string_equal(o.agents_host, rows[i].host);
        assert_int_equal(o.agents_port, rows[i].port);
    }
    assert_true(host_is_any("0.0.0.0") && host_is_any("::") && !host_is_any("10.0.0.1"));
}

static void help_and_version_need_nothing_else(void **state)
{
    (void)state;
    static const char *const lines[] = {"--help", "-h", "--version", "--listen nonsense --help"};
    struct daemon_options o;

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_int_equal(words_read(lines[i], &o, NULL), 0);
        assert_true(o.help || o.version);
    }
}

static void errors_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *line, *says;
    } rows[] = {
        {"",                                         "--data DIR is required"         },
        {"--data",                                   "--data needs a value: DIR"      },
        {"--data=",                                  "--data needs a value"           },
        {"--data ''",                                "--data needs a value"           },
        {"--data /d extra",                          "not 'extra'"                    },
        {"-x",                                       "not '-x'"                       },
        {"--data /d --",                             "not '--'"                       },
        {"--data /d --colour red",                   "unknown option --colour"        },
        {"--data /d --init=yes",                     "--init takes no value"          },
        {"--data /d --lease 0",                      "from 1 to 86400, not '0'"       },
        {"--data /d --lease -3",                     "not '-3'"                       },
        {"--data /d --lease 5s",                     "not '5s'"                       },
        {"--data /d --lease 99999999999999999999",   "--lease takes"                  },
        {"--data /d --log-level loud",               "not 'loud'"                     },
        {"--data /d --token-file /t",                "requires --init"                },
        {"--data /d --tls-cert c",                   "must be given together"         },
        {"--data /d --tls-key k",                    "must be given together"         },
        {"--data /d --tls --tls-cert c --tls-key k", "either --tls"                   },
        {"--data /d --listen 0.0.0.0:3980",          "add --tls"                      },
        {"--data /d --listen 192.168.1.2:3980",      "add --tls"                      },
        {"--data /d --listen [::]:3980",             "add --tls"                      },
        {"--data /d --listen [::ffff:127.0.0.1]:1",  "add --tls"                      },
        {"--data /d --listen nowhere:1",             "--listen: takes an address"     },
        {"--data /d --agents nowhere:1",             "--agents: takes an address"     },
        {"--data /d --agents 127.0.0.1:x",           "--agents: the port"             },
        {"--data /d --agents 127.0.0.1",             "--agents: expected ADDRESS:PORT"},
        {"--data /d --agents none --name a",         "--agents is none"               },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct daemon_options o;
        struct berth_err err = {0};
        assert_int_equal(words_read(rows[i].line, &o, &err), -EINVAL);
        if (!strstr(err.text, rows[i].says))
            fail_msg("'%s' should say '%s', not '%s'", rows[i].line, rows[i].says, err.text);
    }
}

/* The help contains every option and the exit codes. */
static void help_is_complete(void **state)
{
    (void)state;
    static const char *const words[] = {"--data DIR",
                                        "--listen ADDR:PORT",
                                        "--init",
                                        "--token-file FILE",
                                        "--tls",
                                        "--tls-cert FILE",
                                        "--help",
                                        "--max-connections N",
                                        "--agents ADDR:PORT",
                                        "--name NAME,...",
                                        "--lease SECONDS",
                                        "--audit-every N",
                                        "exit codes: 0",
                                        "ready URL"};
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);

    assert_non_null(to);
    daemon_options_help(to);
    (void)fclose(to);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strstr(text, words[i]))
            fail_msg("help lacks '%s'", words[i]);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_parsed),
        cmocka_unit_test(agents_address_has_a_default),
        cmocka_unit_test(help_and_version_need_nothing_else),
        cmocka_unit_test(errors_are_named),
        cmocka_unit_test(help_is_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
