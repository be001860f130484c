/* pages_test.c - tests sharing, copy-on-write, and freeing on another thread. */
#include "base/pages.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { RECORDS = 5 * PAGE_LEN + 17, ROUNDS = 300 };

struct record {
    uint64_t value;
    uint32_t more;
};

static uint64_t value_at(const struct pages *t, uint32_t ix)
{
    return ((const struct record *)pages_at(t, ix))->value;
}

static void set(struct pages *t, uint32_t ix, uint64_t value)
{
    ((struct record *)pages_edit(t, ix))->value = value;
}

static void fill(struct pages *t)
{
    pages_init(t, sizeof(struct record));
    for (uint32_t i = 0; i < RECORDS; i++) {
        assert_int_equal(pages_push(t), i);
        assert_int_equal(value_at(t, i), 0);
        set(t, i, i);
    }
}

static size_t shared_pages(const struct pages *a, const struct pages *b)
{
    size_t n = 0;
    for (size_t i = 0; i < a->pages_len && i < b->pages_len; i++)
        n += a->at[i] == b->at[i];
    return n;
}

static void records_keep_their_values(void **state)
{
    (void)state;
    struct pages t;
    fill(&t);
    for (uint32_t i = 0; i < RECORDS; i++)
        assert_int_equal(value_at(&t, i), i);
    for (size_t i = 0; i < t.pages_len; i++)
        assert_int_equal((uintptr_t)t.at[i] % 64, 0);
    pages_done(&t);
    assert_int_equal(t.len, 0);
    assert_int_equal(pages_push(&t), 0); /* the table can be reused */
    pages_done(&t);
}

static void a_write_copies_one_page(void **state)
{
    (void)state;
    struct pages t, frozen;
    fill(&t);
    pages_share(&t, &frozen);
    assert_int_equal(shared_pages(&t, &frozen), t.pages_len);

    set(&t, PAGE_LEN + 3, 999);
    assert_int_equal(shared_pages(&t, &frozen), t.pages_len - 1);
    assert_int_equal(value_at(&t, PAGE_LEN + 3), 999);
    assert_int_equal(value_at(&frozen, PAGE_LEN + 3), PAGE_LEN + 3);
    assert_int_equal(value_at(&t, PAGE_LEN + 4), PAGE_LEN + 4);

    const void *own = pages_at(&t, PAGE_LEN + 3);
    assert_ptr_equal(pages_edit(&t, PAGE_LEN + 3), own); /* vectors: now alone: no second copy */

    set(&frozen, 0, 555); /* a write to the frozen table does not change the original */
    assert_int_equal(value_at(&t, 0), 0);
    assert_int_equal(shared_pages(&t, &frozen), t.pages_len - 2);

    /* The last table that references a page writes in place. */
    const void *last = pages_at(&t, 2 * PAGE_LEN);
    pages_done(&frozen);
    assert_ptr_equal(pages_edit(&t, 2 * PAGE_LEN), last); /* vectors: the page is not copied */
    pages_done(&t);
}

static void push_does_not_change_the_other_table(void **state)
{
    (void)state;
    struct pages t, frozen, third, empty;
    fill(&t);
    pages_share(&t, &frozen);
    pages_share(&frozen, &third);
    for (uint32_t i = 0; i < 2 * PAGE_LEN; i++)
        set(&t, pages_push(&t), 7);
    assert_int_equal(frozen.len, RECORDS);
    assert_int_equal(value_at(&frozen, RECORDS - 1), RECORDS - 1);
    set(&frozen, pages_push(&frozen), 8); /* the same index, but another record */
    assert_int_equal(value_at(&t, RECORDS), 7);
    assert_int_equal(value_at(&frozen, RECORDS), 8);
    pages_done(&t);
    pages_done(&frozen);
    for (uint32_t i = 0; i < RECORDS; i++)
        assert_int_equal(value_at(&third, i), i);
    pages_done(&third);

    pages_init(&t, 8);
    pages_share(&t, &empty);
    assert_int_equal(pages_push(&empty), 0);
    assert_int_equal(t.len, 0);
    pages_done(&empty);
    pages_done(&t);
}

/* Reads a frozen table, shares the table again, and frees both. */
static void *read_and_drop(void *p)
{
    struct pages *frozen = p, again;
    uintptr_t sum = 0;
    pages_share(frozen, &again);
    pages_done(frozen);
    for (uint32_t i = 0; i < again.len; i++)
        sum += value_at(&again, i);
    pages_done(&again);
    return (void *)sum; /* NOLINT(performance-no-int-to-ptr): a thread has no other small result */
}

static void frozen_tables_are_read_while_the_first_changes(void **state)
{
    (void)state;
    struct pages t;
    fill(&t);
    uintptr_t total = (uintptr_t)RECORDS * (RECORDS - 1) / 2;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct pages frozen[2];
        pthread_t threads[2];
        uintptr_t want = total;
        for (int i = 0; i < 2; i++) {
            pages_share(&t, &frozen[i]);
            assert_int_equal(pthread_create(&threads[i], NULL, read_and_drop, &frozen[i]), 0);
        }
        for (uint32_t i = round % 7; i < RECORDS; i += 61) {
            set(&t, i, value_at(&t, i) + 1);
            total++;
        }
        for (int i = 0; i < 2; i++) {
            void *sum;
            assert_int_equal(pthread_join(threads[i], &sum), 0);
            assert_int_equal((uintptr_t)sum, want);
        }
    }
    pages_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_keep_their_values),
        cmocka_unit_test(a_write_copies_one_page),
        cmocka_unit_test(push_does_not_change_the_other_table),
        cmocka_unit_test(frozen_tables_are_read_while_the_first_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
