/* stop.c - stops an instance: checkpoint signal, stop signal, then SIGKILL. */
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent_parts.h"

#define GRACE_NS_DEFAULT (10 * SECOND_NS)
#define PRESS_AGAIN_NS (3 * SECOND_NS)
#define GATEWAYS_NS (2 * SECOND_NS) /* time for watchers of service_info to remove the endpoint from their balancing */

int signal_number(const char *name)
{
    for (int i = 1; i < NSIG; i++)
        if (sigabbrev_np(i) && strcmp(sigabbrev_np(i), name) == 0)
            return i;
    return -1;
}

static void kill_work(void *ctx)
{
    struct agent_instance *r = ctx;
    r->rc = cgroup_kill(r->agent->cgroups, r->group);
}

static void kill_again(void *ctx)
{
    instance_kill(ctx);
}

static void kill_after(void *ctx)
{
    struct agent_instance *r = ctx;
    r->busy = false;
    if (r->phase == INSTANCE_REAPING)
        instance_reap(r);
    else
        instance_set_timer(r, kill_again, RETRY_NS); /* the shim should exit now; if it does not, kill again */
}

/* Kills the cgroup; without cgroups at least the first process. */
void instance_kill(struct agent_instance *r)
{
    if (r->busy || r->phase != INSTANCE_RUNNING)
        return;
    if (r->pid_fd >= 0)
        (void)syscall(SYS_pidfd_send_signal, r->pid_fd, SIGKILL, NULL, 0);
    r->busy = true;
    worker_run(r->agent->cleaner, kill_work, kill_after, r);
}

static int64_t stop_number(const struct agent_instance *r, const char *key, int64_t fallback)
{
    const json_t *number = json_object_get(json_object_get(r->config, "stop"), key);
    return number ? json_integer_value(number) : fallback;
}

static void on_grace_expired(void *ctx)
{
    struct agent_instance *r = ctx;
    r->stop_now = true;
    instance_kill(r);
}

static void send_signal(const struct agent_instance *r, const json_t *rule, int fallback)
{
    const char *name = json_string_value(json_object_get(rule, "signal"));
    int signo = name ? signal_number(name) : fallback;
    if (r->pid_fd >= 0)
        (void)syscall(SYS_pidfd_send_signal, r->pid_fd, signo > 0 ? signo : fallback, NULL, 0);
}

/* Sends power-down repeatedly until the virtual machine is off or its grace time is over: a guest that is still booting
 * ignores it. */
static void power_down_repeat(void *ctx)
{
    struct agent_instance *r = ctx;
    int64_t left_ns = r->grace_until_ns - loop_now_ns(r->agent->loop);
    int64_t again_ns = r->busy ? RETRY_NS : PRESS_AGAIN_NS;
    if (r->phase != INSTANCE_RUNNING || r->stop_now)
        return;
    if (left_ns <= 0) {
        on_grace_expired(r);
        return;
    }
    if (!r->busy)
        instance_power_down(r);
    instance_set_timer(r, power_down_repeat, left_ns < again_ns ? left_ns : again_ns);
}

/* Sends the checkpoint signal first, if one is configured, and the stop signal after the checkpoint's grace time. The
 * instance may end by itself meanwhile. */
static void stop_signal(void *ctx)
{
    struct agent_instance *r = ctx;
    const json_t *checkpoint = json_object_get(r->config, "checkpoint");
    if (image_is_vm(r->config)) {
        if (r->busy) {
            instance_set_timer(r, stop_signal, RETRY_NS);
            return;
        }
        r->signalled = true;
        r->grace_until_ns = loop_now_ns(r->agent->loop) + stop_number(r, "grace_ns", GRACE_NS_DEFAULT);
        power_down_repeat(r);
        return;
    }
    if (checkpoint && !r->warned) {
        r->warned = true;
        send_signal(r, checkpoint, SIGUSR1);
        instance_set_timer(r, stop_signal, json_integer_value(json_object_get(checkpoint, "grace_ns")));
        return;
    }
    r->signalled = true;
    send_signal(r, json_object_get(r->config, "stop"), SIGTERM);
    instance_set_timer(r, on_grace_expired, stop_number(r, "grace_ns", GRACE_NS_DEFAULT));
}

void instance_stop(struct agent_instance *r)
{
    if (r->stop_now && r->busy) /* the worker will be done soon */
        instance_set_timer(r, kill_again, RETRY_NS);
    else if (r->stop_now)
        instance_kill(r);
    else if (!r->signalled && !r->warned) /* after a signal the promised grace time is kept */
        instance_set_timer(r, stop_signal, stop_number(r, "delay_ns", r->ports.len ? GATEWAYS_NS : 0));
}
