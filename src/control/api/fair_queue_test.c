/* fair_queue_test.c - accounts take turns by the time that they use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "control/api/fair_queue.h"

#define MS INT64_C(1000000)

static struct fair_entry *push(struct fair_queue *q, const char *name)
{
    struct fair_entry *e = mem_zalloc(sizeof *e);
    assert_true(fair_queue_push(q, fair_account_ref(q, name), e));
    return e;
}

/* Runs the next entry for `ns`. */
static struct fair_entry *run(struct fair_queue *q, int64_t ns)
{
    struct fair_entry *e = fair_queue_pop(q);
    if (e)
        fair_queue_charge(q, e->account, ns);
    return e;
}

static void done(struct fair_queue *q, struct fair_entry *e)
{
    fair_account_unref(q, e->account);
    mem_free(e);
}

static void drain(struct fair_queue *q)
{
    struct fair_entry *e;
    while ((e = fair_queue_pop(q)))
        done(q, e);
}

/* The first request of another account waits for at most one entry of a backlog, at every position of the backlog. */
static void backlog_delays_other_account_by_one_entry(void **state)
{
    (void)state;
    for (int64_t each_ns = MS / 10; each_ns <= 50 * MS; each_ns *= 5)
        for (int served = 0; served < 20; served++) {
            struct fair_queue *q = fair_queue_new(1);
            for (int i = 0; i < 100; i++)
                (void)push(q, "mallory");
            for (int i = 0; i < served; i++)
                done(q, run(q, each_ns));
            struct fair_entry *alice = push(q, "alice"), *e;
            int64_t before_ns = 0;
            while ((e = run(q, each_ns)) != alice) {
                before_ns += each_ns;
                done(q, e);
            }
            if (before_ns > FAIR_QUANTUM_NS + each_ns)
                fail_msg("%d served, %lld ns each: %lld ns before", served, (long long)each_ns, (long long)before_ns);
            done(q, e);
            drain(q);
            fair_queue_free(q);
        }
}

/* Two backlogs get half of the time each, however long their entries run. */
static void accounts_share_time_not_entries(void **state)
{
    struct fair_queue *q = fair_queue_new(1);
    int64_t used[2] = {0};
    struct fair_account *slow = fair_account_ref(q, "slow");
    (void)state;
    for (int i = 0; i < 1000; i++) {
        (void)push(q, "slow");
        (void)push(q, "fast");
    }
    for (int i = 0; i < 900; i++) {
        struct fair_entry *e = fair_queue_pop(q);
        int64_t ns = e->account == slow ? 20 * MS : MS / 2;
        fair_queue_charge(q, e->account, ns);
        used[e->account == slow] += ns;
        done(q, e);
    }
    assert_true(used[0] > used[1] * 8 / 10 && used[1] > used[0] * 8 / 10);
    drain(q);
    fair_account_unref(q, slow);
    fair_queue_free(q);
}

static void entries_of_an_account_stay_in_order(void **state)
{
    struct fair_queue *q = fair_queue_new(1);
    struct fair_entry *in[5];
    (void)state;
    for (int i = 0; i < 5; i++)
        in[i] = push(q, "a");
    for (int i = 0; i < 5; i++) {
        assert_ptr_equal(run(q, 10 * MS), in[i]);
        done(q, in[i]);
    }
    assert_null(fair_queue_pop(q));
    assert_int_equal(fair_queue_accounts(q), 0);
    fair_queue_free(q);
}

static void unfinished_entry_resumes_before_next_entry(void **state)
{
    struct fair_queue *q = fair_queue_new(1);
    struct fair_entry *first = push(q, "a"), *second = push(q, "a");
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(run(q, FAIR_QUANTUM_NS / 5), first);
        fair_queue_push_first(q, first->account, first);
    }
    struct fair_entry *other = push(q, "b");
    assert_ptr_equal(run(q, 2 * FAIR_QUANTUM_NS), first);
    fair_queue_push_first(q, first->account, first);
    assert_ptr_equal(run(q, FAIR_QUANTUM_NS), other); /* the other account has its turn first */
    assert_ptr_equal(run(q, FAIR_QUANTUM_NS), first);
    assert_ptr_equal(run(q, FAIR_QUANTUM_NS), second);
    assert_int_equal(fair_queue_waiting(q), 0);
    done(q, first);
    done(q, second);
    done(q, other);
    fair_queue_free(q);
}

static void account_with_many_stored_bytes_is_delayed(void **state)
{
    struct fair_queue *q = fair_queue_new(1);
    struct fair_entry *first = push(q, "a"), *second = push(q, "a"), *other = push(q, "b");
    struct fair_account *a = first->account;
    (void)state;
    assert_ptr_equal(fair_queue_pop(q), first);
    fair_account_commit_begin(q, a, FAIR_COMMITTING_MAX - 1);
    assert_false(fair_queue_idle(q, a)); /* another account waits */
    fair_account_commit_begin(q, a, 1);
    assert_ptr_equal(fair_queue_pop(q), other);
    assert_null(fair_queue_pop(q)); /* `second` waits for the store */
    assert_false(fair_queue_ready(q));
    assert_int_equal(fair_queue_waiting(q), 1);
    assert_true(fair_queue_idle(q, other->account));
    assert_false(fair_queue_idle(q, a));
    fair_account_commit_end(q, a, 1);
    assert_true(fair_queue_ready(q));
    assert_ptr_equal(fair_queue_pop(q), second);
    assert_true(fair_queue_idle(q, a));

    fair_account_commit_begin(q, a, 1);
    struct fair_entry *last = push(q, "a");
    assert_null(fair_queue_pop(q));
    fair_queue_hold_none(q);
    assert_ptr_equal(fair_queue_pop(q), last);
    fair_account_commit_end(q, a, FAIR_COMMITTING_MAX);
    done(q, first);
    done(q, second);
    done(q, last);
    done(q, other);
    fair_queue_free(q);
}

static void a_slice_ends_and_is_renewed(void **state)
{
    struct fair_queue *q = fair_queue_new(1);
    struct fair_account *a = fair_account_ref(q, "a");
    (void)state;
    assert_true(fair_queue_idle(q, a));
    fair_queue_charge(q, a, FAIR_SLICE_NS);
    assert_false(fair_queue_idle(q, a));
    fair_queue_renew(q);
    assert_true(fair_queue_idle(q, a));
    struct fair_entry *e = push(q, "a");
    assert_false(fair_queue_idle(q, a)); /* a new request does not overtake a waiting one */
    assert_int_equal(fair_queue_waiting(q), 1);
    assert_ptr_equal(fair_queue_pop(q), e);
    done(q, e);
    fair_account_unref(q, a);
    fair_queue_free(q);
}

static void waiting_entries_of_an_account_are_bounded(void **state)
{
    struct fair_queue *q = fair_queue_new(1);
    struct fair_account *a = fair_account_ref(q, "a");
    struct fair_entry more = {0}, large = {.bytes = FAIR_BYTES_MAX + 1};
    (void)state;
    for (int i = 0; i < FAIR_WAITING_MAX; i++)
        (void)push(q, "a");
    assert_false(fair_queue_push(q, a, &more));
    drain(q);
    assert_true(fair_queue_push(q, a, &large)); /* a single entry of any size may wait */
    more.bytes = 1;
    assert_false(fair_queue_push(q, a, &more));
    (void)push(q, "b");
    assert_ptr_equal(fair_queue_pop(q), &large);
    drain(q);
    fair_account_unref(q, a);
    fair_queue_free(q);
}

/* Removes an entry at each position of its account's queue. */
static void entry_is_removed_at_any_position(void **state)
{
    (void)state;
    for (size_t out = 0; out < 3; out++) {
        struct fair_queue *q = fair_queue_new(1);
        struct fair_entry *in[3];
        for (size_t i = 0; i < 3; i++)
            in[i] = push(q, "a");
        fair_queue_remove(q, in[out]);
        done(q, in[out]);
        struct fair_entry *last = push(q, "a");
        assert_int_equal(fair_queue_waiting(q), 3);
        for (size_t i = 0; i < 3; i++) {
            if (i == out)
                continue;
            assert_ptr_equal(run(q, MS), in[i]);
            done(q, in[i]);
        }
        fair_queue_remove(q, last); /* the only entry: its account leaves the active list */
        assert_null(fair_queue_pop(q));
        assert_false(fair_queue_ready(q));
        done(q, last);
        assert_int_equal(fair_queue_accounts(q), 0);
        fair_queue_free(q);
    }
}

static void heavy_entries_are_counted(void **state)
{
    struct fair_queue *q = fair_queue_new(1);
    struct fair_account *a = fair_account_ref(q, "a"), *b = fair_account_ref(q, "b");
    (void)state;
    assert_true(fair_account_begin_heavy(a, 2));
    assert_true(fair_account_begin_heavy(a, 2));
    assert_false(fair_account_begin_heavy(a, 2));
    assert_true(fair_account_begin_heavy(b, 2));
    fair_account_end_heavy(a);
    assert_true(fair_account_begin_heavy(a, 2));
    fair_account_end_heavy(a);
    fair_account_end_heavy(a);
    fair_account_end_heavy(b);
    fair_account_unref(q, a);
    fair_account_unref(q, b);
    fair_queue_free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backlog_delays_other_account_by_one_entry),
        cmocka_unit_test(accounts_share_time_not_entries),
        cmocka_unit_test(entries_of_an_account_stay_in_order),
        cmocka_unit_test(a_slice_ends_and_is_renewed),
        cmocka_unit_test(unfinished_entry_resumes_before_next_entry),
        cmocka_unit_test(entry_is_removed_at_any_position),
        cmocka_unit_test(heavy_entries_are_counted),
        cmocka_unit_test(waiting_entries_of_an_account_are_bounded),
        cmocka_unit_test(account_with_many_stored_bytes_is_delayed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
