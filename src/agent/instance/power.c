/* power.c - powers down a virtual machine; on the cleaner's thread, as qemu may answer slowly. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent_parts.h"

static void power_down_work(void *ctx)
{
    struct agent_instance *r = ctx;
    r->rc = vm_power_down(r->agent->state_dir, r->id);
}

static void power_down_after(void *ctx)
{
    struct agent_instance *r = ctx;
    r->busy = false;
    if (r->phase == INSTANCE_REAPING) {
        instance_reap(r);
    } else if (r->stop_now) { /* the grace time ended meanwhile */
        instance_kill(r);
    } else if (r->rc < 0 && r->pid_fd >= 0) {
        NOTE(r->agent, LEVEL_WARN, "instance.unheard", LOG_NUMBER("id", (int64_t)r->id),
             LOG_TEXT("text", strerror(-r->rc)));
        /* after a timeout the power-down is sent again */
        if (r->rc != -ETIMEDOUT)
            /* on SIGTERM qemu flushes its disks and exits */
            (void)syscall(SYS_pidfd_send_signal, r->pid_fd, SIGTERM, NULL, 0);
    }
}

void instance_power_down(struct agent_instance *r)
{
    r->busy = true;
    worker_run(r->agent->cleaner, power_down_work, power_down_after, r);
}
