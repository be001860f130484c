/* instance_exec.c - helper programs of instances, for exec sessions and probes: reads their exit status and kills them.
 */
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent_parts.h"

/* A killed program that has not been reaped. */
struct killed_program {
    struct killed_program *next, **back; /* back: the pointer that points to this entry */
    int pidfd;
    struct loop_source *source;
};

int exec_process_exit(int pidfd)
{
    siginfo_t info = {0};
    if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
        return -1;
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

static void killed_program_free(struct killed_program *d)
{
    *d->back = d->next;
    if (d->next)
        d->next->back = d->back;
    loop_source_free(d->source);
    (void)close(d->pidfd);
    mem_free(d);
}

static void on_program_exit(void *ctx, uint32_t events)
{
    struct killed_program *d = ctx;
    (void)events;
    (void)exec_process_exit(d->pidfd);
    killed_program_free(d);
}

void exec_process_kill(struct agent *a, struct exec_process *b)
{
    int pidfd = b->pidfd;
    b->pidfd = -1;
    exec_process_close(b); /* writers get EPIPE or SIGPIPE, a terminal hangs up */
    if (pidfd < 0)
        return;
    (void)syscall(SYS_pidfd_send_signal, pidfd, SIGHUP, NULL, 0);
    (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    struct killed_program *d = mem_zalloc(sizeof *d);
    *d = (struct killed_program){.next = a->killed_program, .back = &a->killed_program, .pidfd = pidfd};
    if (a->killed_program)
        a->killed_program->back = &d->next;
    a->killed_program = d;
    if (loop_watch_fd(a->loop, pidfd, EPOLLIN, on_program_exit, d, &d->source, NULL) < 0)
        killed_program_free(d); /* the program stays a zombie until the agent exits */
}

void exec_processes_release(struct agent *a)
{
    while (a->killed_program)
        killed_program_free(a->killed_program);
}
