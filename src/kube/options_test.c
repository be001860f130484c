/* options_test.c - the command line of berth-kube. */
#include "kube/options.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define READ(ret, err, ...)                                                                                            \
    kube_options_read((int)(sizeof((char *[]){"berth-kube", __VA_ARGS__}) / sizeof(char *)),                           \
                      (char *[]){"berth-kube", __VA_ARGS__}, (ret), (err))

static void defaults_are_complete(void **state)
{
    (void)state;
    struct kube_options o;
    struct berth_err err = {0};
    char *argv[] = {"berth-kube"};
    assert_int_equal(kube_options_read(1, argv, &o, &err), 0);
    assert_string_equal(o.scheduler_name, "berth");
    assert_string_equal(o.lease, "kube-system/berth-kube");
    assert_int_equal(o.lease_duration_ns, INT64_C(15000000000));
    assert_int_equal(o.renew_deadline_ns, INT64_C(10000000000));
    assert_int_equal(o.retry_period_ns, INT64_C(2000000000));
    assert_true(o.events);
    assert_int_equal(o.log_level, LEVEL_INFO);
    assert_int_equal(o.profiles.len, 1);
    assert_string_equal(o.profiles.names[0], "berth");
    assert_string_equal(o.profiles.profiles[0], "");
    assert_string_equal(o.profiles.own->name, "default");
    kube_options_done(&o);
}

static void invalid_options_are_named(void **state)
{
    (void)state;
    static const struct {
        char *word;
        const char *text;
    } rows[] = {
        {"--lease=berth",                         "must be NAMESPACE/NAME"                                  },
        {"--lease=/berth",                        "must be NAMESPACE/NAME"                                  },
        {"--lease=a/",                            "must be NAMESPACE/NAME"                                  },
        {"--lease=a/b/c",                         "must be NAMESPACE/NAME"                                  },
        {"--leader-elect-lease-duration=soon",    "must be a duration from 100ms to 60m"                    },
        {"--leader-elect-lease-duration=10s",     "renew-deadline (10s) must be shorter"                    },
        {"--leader-elect-lease-duration=15500ms", "in whole seconds"                                        },
        {"--leader-elect-lease-duration=61m",     "must be a duration from 100ms to 60m"                    },
        {"--leader-elect-renew-deadline=15",      "must be shorter than --leader-elect-lease-duration (15s)"},
        {"--leader-elect-renew-deadline=-5s",     "must be a duration from 100ms to 60m"                    },
        {"--leader-elect-renew-deadline=5h",      "must be a duration from 100ms to 60m"                    },
        {"--leader-elect-retry-period=10s",       "must be shorter than --leader-elect-renew-deadline (10s)"},
        {"--leader-elect-retry-period=0s",        "must be a duration from 100ms to 60m"                    },
        {"--events=maybe",                        "--events must be on or off"                              },
        {"--log-level=loud",                      "debug, info, warn or error"                              },
        {"--scheduler-name=",                     "needs a value"                                           },
        {"--scheduler-name=,",                    "name at least one"                                       },
        {"--scheduler-name=a=b",                  "unknown profile 'b'"                                     },
        {"--scheduler-name=a,a",                  "has 'a' twice"                                           },
        {"--profile=b",                           "unknown profile 'b'"                                     },
        {"--connections=0",                       "connections"                                             },
        {"--nonsense",                            "nonsense"                                                },
        {"--webhook=:9443",                       "needs --webhook-cert and --webhook-key"                  },
        {"--webhook-key=a",                       "need --webhook"                                          },
        {"--webhook-cert=a",                      "need --webhook"                                          },
        {"--webhook-unsure=perhaps",              "allow or deny"                                           },
        {"--journal-export=x",                    "needs --journal"                                         },
        {"--journal-days=0",                      "journal-days"                                            },
        {"--journal-size=1",                      "from 64"                                                 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kube_options o;
        struct berth_err err = {0};
        assert_int_equal(READ(&o, &err, rows[i].word), -EINVAL);
        if (!strstr(err.text, rows[i].text))
            fail_msg("'%s' gives '%s'", rows[i].word, err.text);
        kube_options_done(&o);
    }
}

static void options_are_parsed(void **state)
{
    (void)state;
    struct kube_options o;
    struct berth_err err = {0};
    assert_int_equal(READ(&o, &err, "--scheduler-name", "a,b", "--events=off", "--no-lease", "--log-level", "debug"),
                     0);
    assert_string_equal(o.scheduler_name, "a,b");
    assert_false(o.events);
    assert_true(o.no_lease);
    assert_int_equal(o.log_level, LEVEL_DEBUG);
    assert_null(o.journal);
    kube_options_done(&o);
    assert_int_equal(READ(&o, &err, "--scheduler-name", "a,b=pack", "--profile=even"), 0);
    assert_int_equal(o.profiles.len, 2);
    assert_string_equal(o.profiles.names[1], "b");
    assert_string_equal(o.profiles.profiles[1], "pack");
    assert_string_equal(o.profiles.own->name, "even");
    kube_options_done(&o);
    assert_int_equal(READ(&o, &err, "--leader-elect-lease-duration=1m", "--leader-elect-renew-deadline", "40",
                          "--leader-elect-retry-period=1500ms"),
                     0);
    assert_int_equal(o.lease_duration_ns, INT64_C(60000000000));
    assert_int_equal(o.renew_deadline_ns, INT64_C(40000000000));
    assert_int_equal(o.retry_period_ns, INT64_C(1500000000));
    kube_options_done(&o);
    assert_int_equal(READ(&o, &err, "--journal", "d", "--journal-days=7", "--journal-export", "e"), 0);
    assert_string_equal(o.journal, "d");
    assert_string_equal(o.journal_export, "e");
    assert_int_equal(o.journal_days, 7);
    assert_int_equal(o.journal_size, 1024);
    assert_false(o.deny_unchecked);
    kube_options_done(&o);
    assert_int_equal(
        READ(&o, &err, "--webhook=127.0.0.1:1", "--webhook-cert=c", "--webhook-key=k", "--webhook-unsure=deny"), 0);
    assert_string_equal(o.webhook, "127.0.0.1:1");
    assert_true(o.deny_unchecked);
    kube_options_done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_complete),
        cmocka_unit_test(invalid_options_are_named),
        cmocka_unit_test(options_are_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
