#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "control/kind/kind.h"

static void ids_are_labels(void **state)
{
    (void)state;
    static const char longest[] = "a23456789012345678901234567890123456789012345678901234567890123";
    static const struct {
        const char *text, *want; /* NULL: rejected */
    } rows[] = {
        {"alice",       "alice"},
        {"Alice",       "alice"},
        {"a",           "a"    },
        {"0",           "0"    },
        {"a-b-9",       "a-b-9"},
        {longest,       longest},
        {"",            NULL   },
        {"-a",          NULL   },
        {"a-",          NULL   },
        {"-",           NULL   },
        {"a.b",         NULL   },
        {"a/b",         NULL   },
        {"../x",        NULL   },
        {"a b",         NULL   },
        {"a\nb",        NULL   },
        {"\x1b[31m",    NULL   },
        {"caf\xc3\xa9", NULL   },
        {"a_b",         NULL   },
        {"root",        NULL   },
        {"System",      NULL   },
    };
    struct berth_err err;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char got[ID_MAX + 1] = "before";
        int rc = id_fold("user", rows[i].text, got, &err);
        assert_int_equal(rc, rows[i].want ? 0 : -EINVAL);
        assert_string_equal(got, rows[i].want ? rows[i].want : "before");
        if (rc < 0) {
            assert_non_null(strstr(err.text, "user: "));
            assert_null(strchr(err.text, '\n'));
        }
    }
    char too_long[65];
    memset(too_long, 'a', 64);
    too_long[64] = 0;
    char got[ID_MAX + 1];
    assert_int_equal(id_fold("user", too_long, got, &err), -EINVAL);
}

static void keys_and_kinds_match(void **state)
{
    (void)state;
    char buf[OBJECT_KEY_MAX];
    const char *id;

    for (unsigned k = 0; k < KINDS; k++) {
        assert_int_equal(object_key_split(object_key((enum kind)k, "x/y", buf), &id), k);
        assert_string_equal(id, "x/y");
    }
    assert_int_equal(object_key_split("unknown/x", &id), KINDS);
    assert_int_equal(object_key_split("jobs", &id), KINDS);
    assert_int_equal(object_key_split("jobs/", &id), KINDS);
    assert_int_equal(kind_find("jobs"), KIND_JOB);
    assert_int_equal(kind_find("job"), KIND_JOB);
    assert_int_equal(kind_find("svc"), KIND_APP);
    assert_int_equal(kind_find("ledger"), KINDS); /* not in the API */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_labels),
        cmocka_unit_test(keys_and_kinds_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
