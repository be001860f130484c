/* user_range_test.c - ranges of further uids of an owner. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "machine/container/user_range.h"
#include "machine/launch/folder_test.h"

/* Slots do not overlap, are above the ranges of others, and below the largest uid. */
static void slots_do_not_overlap(void **state)
{
    (void)state;
    uint64_t last = 0x6fffffff;
    for (unsigned slot = 0; slot < USER_RANGE_SLOTS; slot++) {
        struct user_range r = user_range_of_slot(slot);
        assert_int_equal(r.count, 65535);
        assert_int_equal(r.first % 65536, 1);
        assert_true(r.first > last + 1 || r.first == last + 2);
        assert_false(r.first <= 0x7fffffff && (uint64_t)r.first + r.count > 0x7ffe0000); /* reserved by systemd */
        last = (uint64_t)r.first + r.count - 1;
    }
    assert_int_equal(last, 0xfffeffff);
    assert_int_equal(user_range_of_slot(USER_RANGE_SLOTS).count, 0);
}

static void uid_numbers_map_to_slots(void **state)
{
    (void)state;
    assert_int_equal(user_range_slot(200000), 0);
    assert_int_equal(user_range_slot(200001), 1);
    assert_int_equal(user_range_slot(199999), USER_RANGE_SLOTS - 1);
    assert_int_equal(user_range_slot(200000 + USER_RANGE_SLOTS), 0);
    for (uid_t uid = 1000; uid < 1000 + 3 * USER_RANGE_SLOTS; uid++) {
        assert_true(user_range_slot(uid) < USER_RANGE_SLOTS);
        assert_int_equal(user_range_slot(uid), user_range_slot(uid + USER_RANGE_SLOTS));
        assert_int_equal((user_range_slot(uid) + 1) % USER_RANGE_SLOTS, user_range_slot(uid + 1));
    }
}

static void subuid_ranges_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t first, count;
    } rows[] = {
        {"ann:100000:65536\n",                      100000, 65535},
        {"bob:1:65536\nann:100000:1000\n",          100000, 1000 },
        {"1001:100000:1000\n",                      100000, 1000 }, /* by number */
        {"ann:100000:10\nann:300000:20\nann:5:1\n", 300000, 20   }, /* the largest */
        {"",                                        0,      0    },
        {"annie:100000:65536\n",                    0,      0    },
        {"ann:100000\nann\n::\nann:x:5\nann:5:x\n", 0,      0    },
        {"ann:0:65536\n",                           0,      0    }, /* uid 0 is never assigned */
        {"ann:-5:65536\nann:5:-1\n",                0,      0    },
        {"ann:900:200\n",                           0,      0    }, /* contains 1001 itself */
        {"ann:4294967290:65536\n",                  0,      0    }, /* exceeds the largest uid */
        {"ann:99999999999999999999:1\n",            0,      0    },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(folder) struct folder f = folder_new();
        folder_put(&f, "subuid", rows[i].text);
        struct user_range r = user_range_read(folder_at(&f, "subuid"), "ann", 1001, 1001);
        if (r.first != rows[i].first || r.count != rows[i].count)
            fail_msg("'%s': %u, %u", rows[i].text, (unsigned)r.first, (unsigned)r.count);
    }
    assert_int_equal(user_range_read("/nothing/here", "ann", 1001, 1001).count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_do_not_overlap),
        cmocka_unit_test(uid_numbers_map_to_slots),
        cmocka_unit_test(subuid_ranges_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
