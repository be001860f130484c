/* instance_exec.c - helper programs of instances, for exec sessions and probes: reads their exit status and kills them.
 */
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent_parts.h"

/* A killed program that has not been reaped. */
struct dying {
    struct dying *next, **back; /* back: the pointer that points to this entry */
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
    beside_close(b); /* writers get EPIPE or SIGPIPE, a terminal hangs up */
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
        dying_free(d); /* the program stays a zombie until the agent exits */
}

void beside_end(struct agent *a)
{
    while (a->dying)
        dying_free(a->dying);
}
