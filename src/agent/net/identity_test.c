/* identity_test.c - certificate renewal times, also when the clock is changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/net/identity.h"

#define SECOND INT64_C(1000000000)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)

static void certificate_is_renewed_at_half_of_its_lifetime(void **state)
{
    static const struct {
        const char *label;
        int64_t got_ns, not_after_ns, now_ns, wait_ns;
    } rows[] = {
        {"just got",              100 * DAY, 114 * DAY, 100 * DAY,          HOUR  },
        {"the clock is behind",   100 * DAY, 114 * DAY, 0,                  HOUR  },
        {"soon",                  100 * DAY, 114 * DAY, 107 * DAY - SECOND, SECOND},
        {"half of its time",      100 * DAY, 114 * DAY, 107 * DAY,          0     },
        {"it has slept too long", 100 * DAY, 114 * DAY, 200 * DAY,          0     },
        {"got by a wrong clock",  200 * DAY, 114 * DAY, 100 * DAY,          HOUR  },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct node_identity id = {.got_ns = rows[i].got_ns};
        identity_until(&id, rows[i].not_after_ns);
        if (identity_wait_ns(&id, rows[i].now_ns) != rows[i].wait_ns)
            fail_msg("%s", rows[i].label);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(certificate_is_renewed_at_half_of_its_lifetime),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
