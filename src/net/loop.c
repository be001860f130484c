/* loop.c - an event loop on epoll, with a heap of timers, a signalfd, and an eventfd for other threads.
 *
 * Pending events of a round may refer to a source that was freed in that round. A freed source is therefore marked dead
 * and its memory is kept until the end of the round.
 */
#include "net/loop.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"

enum { EVENTS_MAX = 256 };
enum { NS_PER_MS = 1000000 };

enum source_kind { SOURCE_FD, SOURCE_TIMER, SOURCE_SIGNAL };

struct loop_source {
    struct loop *loop;
    /* in the list of all sources; a dead source uses `next` for the list of dead sources */
    struct loop_source *prev, *next;
    void *ctx;
    union {
        loop_ready *ready; /* SOURCE_FD only */
        loop_call *call;
    };
    enum source_kind kind;
    bool dead;
    int number;         /* file descriptor or signal number */
    size_t heap_index;  /* index of a timer in the heap; SIZE_MAX: not set */
    int64_t at_ns;      /* expiry of a timer */
    uint64_t set_order; /* order of timers: timers with equal expiry run in the order in which they were set */
};

struct posted_call {
    loop_call *call;
    void *ctx;
};
struct posts {
    struct posted_call *at;
    size_t len, cap;
};

struct loop {
    int epoll_fd, wake_fd, signal_fd;
    int64_t now_ns;
    atomic_bool stopped;
    bool in_round;
    struct loop_source *first, *dead;
    VEC(struct loop_source *) heap;
    uint64_t set_order; /* incremented each time a timer is set */
    sigset_t signals;
    pthread_mutex_t lock; /* protects `posts` */
    struct posts posts;
};

static int64_t clock_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 * NS_PER_MS + t.tv_nsec;
}

/* ---- timers ------------------------------------------------------------------------------------------------------ */

static bool fires_before(const struct loop_source *a, const struct loop_source *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->set_order < b->set_order;
}

static void heap_put(struct loop *l, size_t heap_index, struct loop_source *s)
{
    l->heap.at[heap_index] = s;
    s->heap_index = heap_index;
}

static void heap_up(struct loop *l, struct loop_source *s, size_t heap_index)
{
    while (heap_index > 0 && fires_before(s, l->heap.at[(heap_index - 1) / 2])) {
        heap_put(l, heap_index, l->heap.at[(heap_index - 1) / 2]);
        heap_index = (heap_index - 1) / 2;
    }
    heap_put(l, heap_index, s);
}

static void heap_down(struct loop *l, struct loop_source *s, size_t heap_index)
{
    for (size_t child; (child = 2 * heap_index + 1) < l->heap.len; heap_index = child) {
        if (child + 1 < l->heap.len && fires_before(l->heap.at[child + 1], l->heap.at[child]))
            child++;
        if (!fires_before(l->heap.at[child], s))
            break;
        heap_put(l, heap_index, l->heap.at[child]);
    }
    heap_put(l, heap_index, s);
}

static void heap_drop(struct loop *l, struct loop_source *s)
{
    size_t heap_index = s->heap_index;
    if (heap_index == SIZE_MAX)
        return;
    struct loop_source *last = l->heap.at[--l->heap.len];
    s->heap_index = SIZE_MAX;
    if (last == s)
        return;
    if (heap_index > 0 && fires_before(last, l->heap.at[(heap_index - 1) / 2]))
        heap_up(l, last, heap_index);
    else
        heap_down(l, last, heap_index);
}

void loop_timer_set(struct loop_source *s, int64_t at_ns)
{
    struct loop *l = s->loop;
    assert(s->kind == SOURCE_TIMER && !s->dead);
    heap_drop(l, s);
    if (at_ns == INT64_MAX)
        return;
    /* A time in the past counts as now, so that a timer that sets itself into the past cannot delay the other
     * timers. */
    s->at_ns = at_ns < l->now_ns ? l->now_ns : at_ns;
    s->set_order = l->set_order++;
    vec_push(&l->heap, s);
    heap_up(l, s, l->heap.len - 1);
}

/* Calls the expired timers. Timers that are set during these calls wait for the next round. */
static void timers_call(struct loop *l)
{
    uint64_t set_order = l->set_order;
    while (l->heap.len && l->heap.at[0]->at_ns <= l->now_ns && l->heap.at[0]->set_order < set_order) {
        struct loop_source *s = l->heap.at[0];
        heap_drop(l, s);
        s->call(s->ctx);
    }
}

/* ---- sources ----------------------------------------------------------------------------------------------------- */

static struct loop_source *source_new(struct loop *l, enum source_kind kind, int number, void *ctx)
{
    struct loop_source *s = mem_zalloc(sizeof *s);
    s->loop = l;
    s->kind = kind;
    s->number = number;
    s->ctx = ctx;
    s->heap_index = SIZE_MAX;
    s->next = l->first;
    if (l->first)
        l->first->prev = s;
    l->first = s;
    return s;
}

int loop_watch_fd(struct loop *l, int fd, uint32_t events, loop_ready *ready, void *ctx, struct loop_source **ret,
                  struct berth_err *err)
{
    struct loop_source *s = source_new(l, SOURCE_FD, fd, ctx);
    struct epoll_event event = {.events = events, .data.ptr = s};
    s->ready = ready;
    if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        int rc = err_set(err, errno, "cannot wait for descriptor %d: %s", fd, strerror(errno));
        s->number = -1;
        loop_source_free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

void loop_set_events(struct loop_source *s, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = s};
    assert(s->kind == SOURCE_FD && !s->dead);
    (void)epoll_ctl(s->loop->epoll_fd, EPOLL_CTL_MOD, s->number, &event);
}

struct loop_source *loop_timer_new(struct loop *l, loop_call *call, void *ctx)
{
    struct loop_source *s = source_new(l, SOURCE_TIMER, -1, ctx);
    s->call = call;
    return s;
}

int loop_signal(struct loop *l, int signo, loop_call *call, void *ctx, struct loop_source **ret, struct berth_err *err)
{
    sigset_t more = l->signals, one;
    (void)sigemptyset(&one);
    if (sigaddset(&one, signo) < 0 || sigaddset(&more, signo) < 0)
        return err_set(err, EINVAL, "there is no signal %d", signo);
    if (signalfd(l->signal_fd, &more, 0) < 0)
        return err_set(err, errno, "cannot wait for signal %d: %s", signo, strerror(errno));
    (void)pthread_sigmask(SIG_BLOCK, &one, NULL);
    l->signals = more;
    struct loop_source *s = source_new(l, SOURCE_SIGNAL, signo, ctx);
    s->call = call;
    *ret = s;
    return 0;
}

int loop_service_signals(struct loop *l, loop_call *stop, loop_call *hang_up, void *ctx, struct berth_err *err)
{
    const struct {
        int signo;
        loop_call *call;
    } signals[] = {
        {SIGTERM, stop   },
        {SIGINT,  stop   },
        {SIGHUP,  hang_up},
    };
    struct loop_source *kept;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof signals / sizeof *signals; i++)
        rc = loop_signal(l, signals[i].signo, signals[i].call, ctx, &kept, err);
    return rc;
}

static bool signal_has_source(const struct loop *l, int signo)
{
    for (const struct loop_source *s = l->first; s; s = s->next)
        if (s->kind == SOURCE_SIGNAL && s->number == signo)
            return true;
    return false;
}

static void signal_drop(struct loop *l, int signo)
{
    sigset_t one;
    if (signal_has_source(l, signo))
        return;
    (void)sigemptyset(&one);
    (void)sigaddset(&one, signo);
    (void)sigdelset(&l->signals, signo);
    (void)signalfd(l->signal_fd, &l->signals, 0);
    (void)pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

static void dead_free(struct loop *l)
{
    for (struct loop_source *s = l->dead, *next; s; s = next) {
        next = s->next;
        mem_free(s);
    }
    l->dead = NULL;
}

void loop_source_free(struct loop_source *s)
{
    if (!s)
        return;
    struct loop *l = s->loop;
    assert(!s->dead);
    s->dead = true;
    heap_drop(l, s);
    *(s->prev ? &s->prev->next : &l->first) = s->next;
    if (s->next)
        s->next->prev = s->prev;
    if (s->kind == SOURCE_FD && s->number >= 0)
        (void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, s->number, NULL);
    if (s->kind == SOURCE_SIGNAL)
        signal_drop(l, s->number);
    s->next = l->dead;
    l->dead = s;
    if (!l->in_round)
        dead_free(l);
}

/* ---- other threads ----------------------------------------------------------------------------------------------- */

static void loop_wake(struct loop *l)
{
    const uint64_t one = 1;
    ssize_t written = write(l->wake_fd, &one, sizeof one);
    assert(written == sizeof one || errno == EAGAIN); /* EAGAIN: the counter is full, so the loop is already awake */
}

void loop_post(struct loop *l, loop_call *call, void *ctx)
{
    (void)pthread_mutex_lock(&l->lock);
    vec_push(&l->posts, ((struct posted_call){call, ctx}));
    (void)pthread_mutex_unlock(&l->lock);
    loop_wake(l);
}

static void posts_call(struct loop *l)
{
    uint64_t count;
    (void)!read(l->wake_fd, &count, sizeof count);
    (void)pthread_mutex_lock(&l->lock);
    struct posts posts = l->posts;
    l->posts = (struct posts){0};
    (void)pthread_mutex_unlock(&l->lock);
    for (size_t i = 0; i < posts.len; i++)
        posts.at[i].call(posts.at[i].ctx);
    vec_done(&posts);
}

static void signals_call(struct loop *l)
{
    struct signalfd_siginfo info;
    while (read(l->signal_fd, &info, sizeof info) == sizeof info) {
        for (struct loop_source *s = l->first, *next; s; s = next) {
            next = s->next;
            if (s->kind != SOURCE_SIGNAL || s->number != (int)info.ssi_signo)
                continue;
            s->call(s->ctx);
            /* The call may have freed any source, including `next`. */
            if (next && next->dead)
                break;
        }
    }
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static int wait_ms(const struct loop *l, int64_t timeout_ns)
{
    if (l->heap.len) {
        int64_t left = l->heap.at[0]->at_ns - clock_ns();
        left = left < 0 ? 0 : left;
        timeout_ns = timeout_ns < 0 || left < timeout_ns ? left : timeout_ns;
    }
    if (timeout_ns < 0)
        return -1;
    int64_t ms = timeout_ns / NS_PER_MS + (timeout_ns % NS_PER_MS != 0);
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

int loop_once(struct loop *l, int64_t timeout_ns, struct berth_err *err)
{
    struct epoll_event events[EVENTS_MAX];
    assert(!l->in_round);

    int n = epoll_wait(l->epoll_fd, events, EVENTS_MAX, wait_ms(l, timeout_ns));
    l->now_ns = clock_ns();
    if (n < 0 && errno != EINTR)
        return err_set(err, errno, "cannot wait for events: %s", strerror(errno));
    l->in_round = true;
    for (int i = 0; i < n; i++) {
        struct loop_source *s = events[i].data.ptr;
        if (s == NULL)
            posts_call(l);
        else if ((void *)s == l)
            signals_call(l);
        else if (!s->dead)
            s->ready(s->ctx, events[i].events);
    }
    timers_call(l);
    l->in_round = false;
    dead_free(l);
    return 0;
}

int loop_run(struct loop *l, struct berth_err *err)
{
    int rc = 0;
    while (rc == 0 && !atomic_load(&l->stopped))
        rc = loop_once(l, -1, err);
    atomic_store(&l->stopped, false);
    return rc;
}

void loop_stop(struct loop *l)
{
    atomic_store(&l->stopped, true);
    loop_wake(l);
}

int64_t loop_now_ns(const struct loop *l)
{
    return l->now_ns;
}

/* Adds one of the loop's own descriptors to epoll. `name` identifies the descriptor in events: NULL for wake_fd, the
 * loop for signal_fd. */
static bool watch_own_fd(struct loop *l, int fd, void *name)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = name};
    return fd >= 0 && epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

int loop_new(struct loop **ret, struct berth_err *err)
{
    struct loop *l = mem_zalloc(sizeof *l);
    (void)pthread_mutex_init(&l->lock, NULL);
    (void)sigemptyset(&l->signals);
    l->now_ns = clock_ns();
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->signal_fd = signalfd(-1, &l->signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (l->epoll_fd < 0 || !watch_own_fd(l, l->wake_fd, NULL) || !watch_own_fd(l, l->signal_fd, l)) {
        int rc = err_set(err, errno, "cannot start an event loop: %s", strerror(errno));
        loop_free(l);
        return rc;
    }
    *ret = l;
    return 0;
}

void loop_free(struct loop *l)
{
    const int fds[] = {l ? l->epoll_fd : -1, l ? l->wake_fd : -1, l ? l->signal_fd : -1};
    if (!l)
        return;
    assert(!l->in_round);
    while (l->first)
        loop_source_free(l->first);
    vec_done(&l->heap);
    vec_done(&l->posts);
    (void)pthread_mutex_destroy(&l->lock);
    mem_free(l);
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
}
