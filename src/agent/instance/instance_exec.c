/* instance_exec.c - programs beside instances, for errands and health checks: how one ended, and the end of one that is not wanted
 * any more. */
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent_parts.h"

/* One that was killed and has yet to be waited for. */
struct dying {
    struct dying *next, **back; /* back: what points here */
    int pidfd;
    struct loop_source *source;
};

int beside_exit(int pidfd)
{
    siginfo_t info = {0};
    if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
        return -1;
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

static void dying_free(struct dying *d)
{
    *d->back = d->next;
    if (d->next)
        d->next->back = d->back;
    loop_source_free(d->source);
    (void)close(d->pidfd);
    mem_free(d);
}

static void died(void *ctx, uint32_t events)
{
    struct dying *d = ctx;
    (void)events;
    (void)beside_exit(d->pidfd);
    dying_free(d);
}

void beside_kill(struct agent *a, struct beside *b)
{
    int pidfd = b->pidfd;
    b->pidfd = -1;
    beside_close(b); /* whoever writes on hears of it, and a terminal hangs up */
    if (pidfd < 0)
        return;
    (void)syscall(SYS_pidfd_send_signal, pidfd, SIGHUP, NULL, 0);
    (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    struct dying *d = mem_zalloc(sizeof *d);
    *d = (struct dying){.next = a->dying, .back = &a->dying, .pidfd = pidfd};
    if (a->dying)
        a->dying->back = &d->next;
    a->dying = d;
    if (loop_watch_fd(a->loop, pidfd, EPOLLIN, died, d, &d->source, NULL) < 0)
        dying_free(d); /* it stays a zombie until the agent ends */
}

void beside_end(struct agent *a)
{
    while (a->dying)
        dying_free(a->dying);
}
