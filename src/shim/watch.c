/* watch.c - while the instance runs: reads its log and its progress, and enforces the fence time.
 *
 * The log pipe is read at most every 5 ms, one pipe buffer at a time, so a flood of output costs at most 200 wakeups
 * and some 13 MB a second; meanwhile the instance blocks on its pipe. An instance without output causes no wakeups: the
 * fence timer is set to the end of the fence time and checks then when the daemon was last heard.
 */
#include "shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

enum { CHUNK = 64 << 10, LOG_EVERY_MS = 5, PROGRESS_EVERY_MS = 250, DRAIN_MAX = 16 };
enum { EXIT_PAUSE_MS = 100, EXIT_PAUSE_MS_MAX = 5000, EXIT_WAIT_MS_MAX = 3 * 60 * 1000 };

struct shim_watch {
    struct shim *s;
    struct log_out log;
    struct progress_reader progress;
    int signals, alarm;
    int64_t begin_ns;            /* start of the instance */
    int64_t log_at, progress_at; /* earliest time of the next read */
    bool fenced;
    int64_t silent_ns;
    char chunk[CHUNK];
};

/* ---- fence ---- */

static void alarm_set(const struct shim_watch *w, int64_t at_ns)
{
    struct itimerspec at = {
        .it_value = {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000}
    };

    if (timerfd_settime(w->alarm, TFD_TIMER_ABSTIME, &at, NULL))
        (void)raise(SIGABRT); /* without a timer the fence would not work */
}

bool fence_past(const struct shim *s)
{
    int64_t heard = contact_time_read(s->spec.heard), until;

    return s->spec.launch.fence_ns > 0 && heard > 0 &&
           !__builtin_add_overflow(heard, s->spec.launch.fence_ns, &until) && boottime_ns() >= until;
}

static void check_fence(struct shim_watch *w)
{
    int64_t now = boottime_ns(), heard = contact_time_read(w->s->spec.heard), until;

    if (heard <= 0)
        heard = w->begin_ns; /* no contact is recorded; otherwise the fence time includes the preparation */
    if (__builtin_add_overflow(heard, w->s->spec.launch.fence_ns, &until))
        return;
    if (now < until) {
        alarm_set(w, until);
        return;
    }
    w->fenced = true;
    w->silent_ns = now - heard;
}

/* ---- pipes ---- */

/* Returns the number of bytes read; 0: all writers have closed the pipe; -EAGAIN: the pipe is empty. */
static ssize_t log_read(struct shim_watch *w)
{
    ssize_t n = read(w->s->log_in, w->chunk, sizeof w->chunk);

    if (n > 0)
        log_put(&w->log, w->chunk, (size_t)n);
    return n < 0 ? -errno : n;
}

static ssize_t progress_read(struct shim_watch *w)
{
    ssize_t n = read(w->s->progress_in, w->chunk, sizeof w->chunk);

    if (n > 0) {
        progress_take(&w->progress, w->chunk, (size_t)n);
        progress_write(&w->progress, w->s->dir);
    }
    return n < 0 ? -errno : n;
}

/* Reads what is left in the pipes after the end. Bounded, because processes that could not be killed may go on
 * writing. */
static void drain(struct shim_watch *w)
{
    for (int i = 0; i < DRAIN_MAX && w->s->log_in >= 0 && log_read(w) > 0;)
        i++;
    for (int i = 0; i < DRAIN_MAX && w->s->progress_in >= 0 && progress_read(w) > 0;)
        i++;
}

/* ---- event loop ------------------------------------------------------------------------------------------------- */

enum { AT_SIGNALS, AT_ALARM, AT_LOG, AT_PROGRESS, AT_LEN };

static int timeout_of(const struct shim_watch *w, int64_t now)
{
    int64_t at = INT64_MAX;

    if (w->s->log_in >= 0 && w->log_at > now)
        at = w->log_at;
    if (w->s->progress_in >= 0 && w->progress_at > now && w->progress_at < at)
        at = w->progress_at;
    return at == INT64_MAX ? -1 : (int)((at - now) / 1000000) + 1;
}

static void round_do(struct shim_watch *w)
{
    int64_t now = boottime_ns();
    struct pollfd fds[AT_LEN] = {
        [AT_SIGNALS] = {.fd = w->signals,                                     .events = POLLIN},
        [AT_ALARM] = {.fd = w->alarm,                                       .events = POLLIN},
        [AT_LOG] = {.fd = w->log_at <= now ? w->s->log_in : -1,           .events = POLLIN},
        [AT_PROGRESS] = {.fd = w->progress_at <= now ? w->s->progress_in : -1, .events = POLLIN},
    };
    struct signalfd_siginfo info;
    uint64_t times;

    if (poll(fds, AT_LEN, timeout_of(w, now)) <= 0)
        return;
    now = boottime_ns();
    if (fds[AT_SIGNALS].revents && read(w->signals, &info, sizeof info) > 0)
        (void)tree_reap(w->s);
    if (fds[AT_ALARM].revents && read(w->alarm, &times, sizeof times) > 0)
        check_fence(w);
    if (fds[AT_LOG].revents) {
        w->log_at = now + LOG_EVERY_MS * INT64_C(1000000);
        if (log_read(w) == 0)
            close(take_fd(&w->s->log_in));
    }
    if (fds[AT_PROGRESS].revents) {
        w->progress_at = now + PROGRESS_EVERY_MS * INT64_C(1000000);
        if (progress_read(w) == 0)
            close(take_fd(&w->s->progress_in));
    }
}

static int watch_open(struct shim_watch *w)
{
    const struct launch *l = &w->s->spec.launch;
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    w->signals = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
    w->alarm = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (w->signals < 0 || w->alarm < 0)
        return -errno;
    (void)log_open(&w->log, w->s->spec.logs, l->log_bytes, l->log_files); /* each write tries to open it again */
    w->progress.milli = -1;
    w->begin_ns = boottime_ns();
    if (l->fence_ns > 0)
        alarm_set(w, w->begin_ns); /* expires at once */
    return 0;
}

/* ---- end -------------------------------------------------------------------------------------------------------- */

static int code_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Writes DIR/exit, retrying for some minutes on a full disk: without this file the outcome is unknown and the instance
 * may be run again. Only the agent waits for the shim. */
static void exit_put(int dir, const char *text, size_t len)
{
    int64_t waited_ms = 0;
    int rc = file_write(dir, "exit", text, len, true);

    for (int64_t ms = EXIT_PAUSE_MS; rc && rc != -ENOENT && waited_ms < EXIT_WAIT_MS_MAX; ms *= 2) {
        if (ms > EXIT_PAUSE_MS_MAX)
            ms = EXIT_PAUSE_MS_MAX;
        (void)nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
        waited_ms += ms;
        rc = file_write(dir, "exit", text, len, true);
    }
}

static void exit_write(const struct shim_watch *w, bool clean)
{
    CLEANUP(str) struct str text = {0};

    str_addf(&text, "%d", w->s->ended < 0 ? 128 + SIGKILL : code_of(w->s->ended));
    if (w->fenced)
        str_addf(&text, " fenced: no contact with the daemon for %lld s", (long long)(w->silent_ns / 1000000000));
    if (!clean)
        str_add(&text,
                w->fenced ? "; some of its processes cannot be killed" : " some of its processes cannot be killed");
    str_add_char(&text, '\n');
    exit_put(w->s->dir, text.at, text.len);
}

void watch(struct shim *s)
{
    static struct shim_watch w;
    int rc;
    bool clean;

    w.s = s;
    rc = watch_open(&w);
    while (rc == 0 && s->ended < 0 && !w.fenced)
        round_do(&w);
    if (w.fenced && s->spec.launch.stop_signal > 0)
        (void)kill(s->pid, s->spec.launch.stop_signal);
    clean = tree_kill(s);
    if (s->spec.launch.runtime)
        container_end(s);
    drain(&w);
    exit_write(&w, clean);
}
