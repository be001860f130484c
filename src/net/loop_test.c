/* loop_test.c - tests descriptors, timers, signals, other threads, and sources that are freed inside callbacks. */
#include "net/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/hash.h"

enum { MS = 1000000 };

struct pair {
    int in, out;
};

static struct pair pair_new(void)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    return (struct pair){fds[0], fds[1]};
}

static void pair_done(struct pair p)
{
    (void)close(p.in);
    (void)close(p.out);
}

static struct loop *must_loop(void)
{
    struct loop *l = NULL;
    assert_int_equal(loop_new(&l, NULL), 0);
    return l;
}

static void once(struct loop *l)
{
    assert_int_equal(loop_once(l, 0, NULL), 0);
}

/* ---- file descriptors ------------------------------------------------------------------------------------------- */

struct seen {
    struct loop_source *source, *other;
    unsigned calls;
    uint32_t events;
};

static void note_ready(void *ctx, uint32_t events)
{
    struct seen *seen = ctx;
    seen->calls++;
    seen->events = events;
}

static void a_descriptor_is_called_while_it_is_ready(void **state)
{
    struct loop *l = must_loop();
    struct pair p = pair_new();
    struct seen seen = {0};
    char byte;

    (void)state;
    assert_int_equal(loop_watch_fd(l, p.in, EPOLLIN, note_ready, &seen, &seen.source, NULL), 0);
    once(l);
    assert_int_equal(seen.calls, 0);
    assert_int_equal(write(p.out, "x", 1), 1);
    once(l);
    once(l);
    assert_int_equal(seen.calls, 2); /* level-triggered */
    assert_int_equal(seen.events, EPOLLIN);
    loop_set_events(seen.source, 0);
    once(l);
    assert_int_equal(seen.calls, 2);
    loop_set_events(seen.source, EPOLLIN);
    assert_int_equal(read(p.in, &byte, 1), 1);
    once(l);
    assert_int_equal(seen.calls, 2);
    (void)close(p.out);
    once(l);
    assert_int_equal(seen.calls, 3);
    assert_true(seen.events & EPOLLHUP);
    loop_source_free(seen.source);
    once(l);
    assert_int_equal(seen.calls, 3);
    loop_free(l);
    (void)close(p.in);
}

static void free_both(void *ctx, uint32_t events)
{
    struct seen *seen = ctx;
    (void)events;
    seen->calls++;
    loop_source_free(seen->source);
    loop_source_free(seen->other);
}

/* Two descriptors are ready in the same round; the first callback frees both. */
static void source_freed_in_a_round_is_not_called(void **state)
{
    struct loop *l = must_loop();
    struct pair p = pair_new(), q = pair_new();
    struct seen seen = {0};

    (void)state;
    assert_int_equal(loop_watch_fd(l, p.in, EPOLLIN, free_both, &seen, &seen.source, NULL), 0);
    assert_int_equal(loop_watch_fd(l, q.in, EPOLLIN, free_both, &seen, &seen.other, NULL), 0);
    assert_int_equal(write(p.out, "x", 1), 1);
    assert_int_equal(write(q.out, "x", 1), 1);
    once(l);
    assert_int_equal(seen.calls, 1);
    once(l);
    assert_int_equal(seen.calls, 1);
    loop_free(l);
    pair_done(p);
    pair_done(q);
}

static void a_descriptor_that_cannot_be_watched_is_an_error(void **state)
{
    struct loop *l = must_loop();
    struct loop_source *untouched = (struct loop_source *)&l;
    struct berth_err err;

    (void)state;
    assert_int_equal(loop_watch_fd(l, 987654, EPOLLIN, note_ready, NULL, &untouched, &err), -EBADF);
    assert_non_null(strstr(err.text, "987654"));
    assert_ptr_equal(untouched, &l);
    assert_int_equal(loop_signal(l, 9999, NULL, NULL, &untouched, &err), -EINVAL);
    assert_non_null(strstr(err.text, "9999"));
    assert_ptr_equal(untouched, &l);
    loop_source_free(NULL);
    loop_free(l);
    loop_free(NULL);
}

static void loop_creation_fails_without_descriptors(void **state)
{
    struct rlimit before, none;
    struct loop *l = NULL;
    struct berth_err err;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    /* Allows fewer descriptors than the three that a loop needs. */
    for (rlim_t room = 0; room < 3; room++) {
        int probe = dup(0);
        (void)close(probe);
        none = (struct rlimit){(rlim_t)probe + room, before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        int rc = loop_new(&l, &err);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(rc, -EMFILE);
        assert_null(l);
    }
}

/* ---- timers ------------------------------------------------------------------------------------------------------ */

enum { TIMERS = 3000 };

struct test_alarm {
    struct loop *loop;
    struct loop_source *timer;
    int64_t at_ns;
    unsigned calls;
    struct alarms *all;
};

struct alarms {
    struct test_alarm at[TIMERS];
    unsigned rung;
    int64_t last_ns;
};

static void ring(void *ctx)
{
    struct test_alarm *a = ctx;
    a->calls++;
    a->all->rung++;
    assert_true(a->at_ns <= loop_now_ns(a->loop));
    assert_true(a->all->last_ns <= a->at_ns);
    a->all->last_ns = a->at_ns;
}

static void timers_expire_in_order_and_once(void **state)
{
    static struct alarms all;
    struct loop *l = must_loop();
    uint64_t seed = 1;
    unsigned want = 0;

    (void)state;
    memset(&all, 0, sizeof all);
    int64_t now = loop_now_ns(l);
    for (size_t i = 0; i < TIMERS; i++) {
        struct test_alarm *a = &all.at[i];
        *a = (struct test_alarm){.loop = l, .all = &all, .timer = loop_timer_new(l, ring, a)};
        a->at_ns = now + 1 + (int64_t)(hash_u64(seed++) % (20 * MS));
        loop_timer_set(a->timer, a->at_ns);
    }
    for (size_t i = 0; i < TIMERS; i++) { /* some are moved, some disabled, some freed */
        struct test_alarm *a = &all.at[i];
        if (i % 5 == 0)
            loop_timer_set(a->timer, a->at_ns = now + 1 + (int64_t)(hash_u64(seed++) % (20 * MS)));
        if (i % 7 == 0)
            loop_timer_set(a->timer, INT64_MAX);
        if (i % 11 == 0)
            loop_source_free(a->timer);
        want += i % 7 != 0 && i % 11 != 0;
    }
    while (all.rung < want)
        assert_int_equal(loop_once(l, -1, NULL), 0);
    once(l);
    assert_int_equal(all.rung, want);
    for (size_t i = 0; i < TIMERS; i++)
        assert_int_equal(all.at[i].calls, i % 7 != 0 && i % 11 != 0);
    loop_free(l);
}

static void ring_again(void *ctx)
{
    struct test_alarm *a = ctx;
    a->calls++;
    loop_timer_set(a->timer, 0);
}

static void count_alarm(void *ctx)
{
    ((struct test_alarm *)ctx)->calls++;
}

/* A timer that is always overdue is called once per round and does not block other timers. */
static void an_overdue_timer_does_not_starve_others(void **state)
{
    struct loop *l = must_loop();
    struct pair p = pair_new();
    struct seen seen = {0};
    struct test_alarm eager = {0}, patient = {0};

    (void)state;
    eager.timer = loop_timer_new(l, ring_again, &eager);
    patient.timer = loop_timer_new(l, count_alarm, &patient);
    assert_int_equal(loop_watch_fd(l, p.in, EPOLLIN, note_ready, &seen, &seen.source, NULL), 0);
    assert_int_equal(write(p.out, "x", 1), 1);
    loop_timer_set(eager.timer, -5);
    loop_timer_set(patient.timer, loop_now_ns(l) + 1);
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(loop_once(l, -1, NULL), 0);
        assert_int_equal(eager.calls, i);
        assert_int_equal(seen.calls, i);
    }
    assert_int_equal(patient.calls, 1);
    loop_free(l);
    pair_done(p);
}

static void free_own(void *ctx)
{
    struct test_alarm *a = ctx;
    a->calls++;
    loop_source_free(a->timer);
}

static void a_timer_may_free_itself(void **state)
{
    struct loop *l = must_loop();
    struct test_alarm a = {0};

    (void)state;
    a.timer = loop_timer_new(l, free_own, &a);
    loop_timer_set(a.timer, 0);
    once(l);
    once(l);
    assert_int_equal(a.calls, 1);
    loop_free(l);
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

static bool is_blocked(int signo)
{
    sigset_t now;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &now);
    return sigismember(&now, signo);
}

static void signals_call_their_callbacks(void **state)
{
    struct loop *l = must_loop();
    struct test_alarm user = {.loop = l}, hangup = {.loop = l};
    struct loop_source *second;

    (void)state;
    assert_int_equal(loop_signal(l, SIGUSR1, count_alarm, &user, &user.timer, NULL), 0);
    assert_int_equal(loop_signal(l, SIGUSR1, count_alarm, &user, &second, NULL), 0);
    assert_int_equal(loop_signal(l, SIGHUP, free_own, &hangup, &hangup.timer, NULL), 0);
    once(l);
    assert_int_equal(user.calls, 0);
    (void)raise(SIGUSR1);
    (void)raise(SIGHUP);
    once(l);
    assert_int_equal(user.calls, 2);
    assert_int_equal(hangup.calls, 1);
    assert_false(is_blocked(SIGHUP)); /* freed by its own callback */
    loop_source_free(second);
    assert_true(is_blocked(SIGUSR1));
    (void)raise(SIGUSR1);
    once(l);
    assert_int_equal(user.calls, 3);
    loop_free(l);
    assert_false(is_blocked(SIGUSR1));
}

/* ---- other threads ----------------------------------------------------------------------------------------------- */

enum { THREADS = 4, POSTS = 500 };

struct post {
    struct poster *by;
    unsigned number;
};

struct poster {
    struct loop *loop;
    pthread_t thread, home;
    struct post posts[POSTS];
    unsigned next;
    atomic_uint *left;
};

static void take_post(void *ctx)
{
    struct post *post = ctx;
    assert_true(pthread_equal(pthread_self(), post->by->home));
    assert_int_equal(post->number, post->by->next++);
    if (atomic_fetch_sub(post->by->left, 1) == 1)
        loop_stop(post->by->loop);
}

static void *post_all(void *ctx)
{
    struct poster *p = ctx;
    for (unsigned i = 0; i < POSTS; i++) {
        p->posts[i] = (struct post){p, i};
        loop_post(p->loop, take_post, &p->posts[i]);
    }
    return NULL;
}

static void posts_arrive_in_order(void **state)
{
    static struct poster posters[THREADS];
    struct loop *l = must_loop();
    atomic_uint left = THREADS * POSTS;

    (void)state;
    for (size_t i = 0; i < THREADS; i++) {
        posters[i] = (struct poster){.loop = l, .home = pthread_self(), .left = &left};
        assert_int_equal(pthread_create(&posters[i].thread, NULL, post_all, &posters[i]), 0);
    }
    assert_int_equal(loop_run(l, NULL), 0);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(posters[i].thread, NULL), 0);
        assert_int_equal(posters[i].next, POSTS);
    }
    loop_stop(l); /* before the run, which then does not start */
    loop_post(l, count_alarm, NULL);
    assert_int_equal(loop_run(l, NULL), 0);
    loop_free(l); /* the posted call is dropped */
}

struct task {
    struct loop *loop;
    struct worker *worker;
    pthread_t home;
    struct task *before;
    int gate; /* the task reads from it before it finishes; -1: none */
    bool worked, after;
};

static void task_work(void *ctx)
{
    struct task *t = ctx;
    char byte;
    assert_false(pthread_equal(pthread_self(), t->home));
    assert_true(!t->before || t->before->worked);
    if (t->gate >= 0)
        (void)!read(t->gate, &byte, 1);
    t->worked = true;
}

static void task_after(void *ctx)
{
    struct task *t = ctx;
    assert_true(pthread_equal(pthread_self(), t->home));
    assert_true(t->worked && (!t->before || t->before->after));
    t->after = true;
    loop_stop(t->loop);
}

static void worker_runs_tasks_in_order(void **state)
{
    struct loop *l = must_loop();
    struct worker *w = worker_new(l);
    struct task tasks[20];

    (void)state;
    for (size_t i = 0; i < 20; i++) {
        tasks[i] = (struct task){.loop = l, .home = pthread_self(), .before = i ? &tasks[i - 1] : NULL, .gate = -1};
        worker_run(w, task_work, task_after, &tasks[i]);
    }
    while (!tasks[19].after)
        assert_int_equal(loop_run(l, NULL), 0);
    worker_free(w);
    worker_free(NULL);
    loop_free(l);
}

static void freed_worker_makes_no_calls(void **state)
{
    struct loop *l = must_loop();
    struct worker *w = worker_new(l);
    struct pair gate = pair_new();
    struct task tasks[3];

    (void)state;
    for (size_t i = 0; i < 3; i++)
        tasks[i] = (struct task){.loop = l, .home = pthread_self(), .gate = i == 0 ? gate.in : -1};
    for (size_t i = 0; i < 3; i++)
        worker_run(w, task_work, task_after, &tasks[i]);
    assert_int_equal(write(gate.out, "x", 1), 1);
    worker_free(w);
    once(l);
    for (size_t i = 0; i < 3; i++)
        assert_false(tasks[i].after);
    loop_free(l);
    pair_done(gate);
}

static void task_free_worker(void *ctx)
{
    struct task *t = ctx;
    t->after = true;
    worker_free(t->worker);
    loop_stop(t->loop);
}

static void worker_may_be_freed_by_its_callback(void **state)
{
    struct loop *l = must_loop();
    struct worker *w = worker_new(l);
    struct task first = {.loop = l, .worker = w, .home = pthread_self(), .gate = -1};
    struct task second = {.loop = l, .worker = w, .home = pthread_self(), .gate = -1};

    (void)state;
    worker_run(w, task_work, task_free_worker, &first);
    worker_run(w, task_work, task_after, &second);
    assert_int_equal(loop_run(l, NULL), 0);
    once(l);
    assert_true(first.after);
    assert_false(second.after);
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_descriptor_is_called_while_it_is_ready),
        cmocka_unit_test(source_freed_in_a_round_is_not_called),
        cmocka_unit_test(a_descriptor_that_cannot_be_watched_is_an_error),
        cmocka_unit_test(loop_creation_fails_without_descriptors),
        cmocka_unit_test(timers_expire_in_order_and_once),
        cmocka_unit_test(an_overdue_timer_does_not_starve_others),
        cmocka_unit_test(a_timer_may_free_itself),
        cmocka_unit_test(signals_call_their_callbacks),
        cmocka_unit_test(posts_arrive_in_order),
        cmocka_unit_test(worker_runs_tasks_in_order),
        cmocka_unit_test(freed_worker_makes_no_calls),
        cmocka_unit_test(worker_may_be_freed_by_its_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
