/* usage_poll.c - polls the usage of instances (limits.c) and of the machine, and reads the progress that instances
 * report.
 *
 * Instances are polled one after the other, a slice every second, so that the work of a thousand instances is spread
 * over time. Progress is a file that the shim replaces; inotify reports the change.
 */
#include <errno.h>
#include <inttypes.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "agent/agent_parts.h"
#include "machine/net/net_limit.h"

enum { ROUND_S = 10, TRIM_S = 60, IMAGES_S = 24 * 3600, PROBE_ROUNDS = 60 };

struct usage_poll {
    struct agent *agent;
    struct loop_source *timer, *source;
    struct probe_use *use;
    struct probe_config config;
    unsigned rounds;
    uint64_t pools;        /* state of the huge page pools at the last probe */
    bool due;              /* the next probe includes the inventory (probe_machine) */
    struct worker *prober; /* separate thread, as plugins may be slow */
    json_t *probed;
    bool probing;
    int inotify;
    size_t next; /* index of the next instance */
    unsigned seconds;
};

/* ---- usage ------------------------------------------------------------------------------------------------------ */

static void probe_work(void *ctx)
{
    struct usage_poll *l = ctx;
    json_t *machine = NULL;
    port_guard_poll(l->agent->guard);
    l->probed = probe_use_poll(l->use, agent_boottime_ns());
    if ((l->due || gpu_monitor_changed(l->agent->gpus)) && probe_machine(&l->config, &machine, NULL) == 0) {
        gpu_monitor_add_inventory(l->agent->gpus, machine);
        (void)json_object_set_new(l->probed, "probed", machine);
    }
    /* Last, so that an unhealthy GPU and its condition are in the same report. */
    gpu_monitor_report(l->agent->gpus, l->probed);
}

static void probe_after(void *ctx)
{
    struct usage_poll *l = ctx;
    l->probing = false;
    node_machine_state(l->agent->node, take_ptr(&l->probed));
}

void usage_poll_probe(struct usage_poll *l)
{
    if (!l || l->probing)
        return;
    /* The inventory (disks, devices) changes seldom. A change of the huge page pools is reported at once, because an
     * operation may wait for it; so is a lost GPU, so that nothing more is placed on it. */
    uint64_t pools = probe_pools(&l->config);
    l->due = l->rounds++ % PROBE_ROUNDS == 0 || pools != l->pools;
    l->pools = pools;
    l->probing = true;
    worker_run(l->prober, probe_work, probe_after, l);
}

static void logs_work(void *ctx)
{
    const struct agent *a = ctx;
    logs_trim(a->state_dir, a->options->log_mib << 20, INT64_MAX, agent_clock_ns());
}

static void usage_poll_tick(void *ctx)
{
    struct usage_poll *l = ctx;
    struct agent *a = l->agent;
    int64_t now_ns = agent_boottime_ns();
    size_t slice = a->runs.len / ROUND_S + 1;
    net_limiter_share(a->nets, now_ns);
    for (size_t i = 0; i < slice && i < a->runs.len; i++) {
        l->next = l->next + 1 < a->runs.len ? l->next + 1 : 0;
        if (a->runs.at[l->next]->phase == INSTANCE_RUNNING && !a->runs.at[l->next]->busy)
            limits_poll(a->runs.at[l->next], now_ns);
    }
    if (l->seconds++ % ROUND_S == 0 || probe_pools(&l->config) != l->pools)
        usage_poll_probe(l);
    if (l->seconds % TRIM_S == 0)
        worker_run(l->prober, logs_work, NULL, a);
    if (l->seconds % IMAGES_S == 1) /* for the first time soon after the start: removes what a crash has left */
        trim_images(a);
    loop_timer_set(l->timer, loop_now_ns(a->loop) + SECOND_NS);
}

/* ---- progress --------------------------------------------------------------------------------------------------- */

static void read_progress(struct agent_instance *r)
{
    char note[LAUNCH_TEXT_MAX] = "";
    int milli = -1;
    if (launch_progress(r->agent->state_dir, r->id, &milli, note) == 0)
        node_progress(r->agent->node, r->id, milli, note);
}

static struct agent_instance *instance_by_watch(const struct agent *a, int watch)
{
    for (size_t i = 0; i < a->runs.len; i++)
        if (a->runs.at[i]->watched == watch)
            return a->runs.at[i];
    return NULL;
}

static void on_readable(void *ctx, uint32_t events)
{
    struct usage_poll *l = ctx;
    char buf[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
    (void)events;
    ssize_t len = read(l->inotify, buf, sizeof buf);
    for (const char *at = buf; len > 0 && at < buf + len;) {
        const struct inotify_event *event = (const void *)at;
        struct agent_instance *r =
            event->len && strcmp(event->name, "progress") == 0 ? instance_by_watch(l->agent, event->wd) : NULL;
        if (r)
            read_progress(r);
        at += sizeof *event + event->len;
    }
}

void usage_poll_begin(struct agent_instance *r)
{
    char path[STATE_PATH_MAX], name[24];
    if (state_dir_entry_path(r->agent->state_dir, "instances", str_u64(r->id, name), path) == 0)
        r->watched = inotify_add_watch(r->agent->look->inotify, path, IN_MOVED_TO | IN_ONLYDIR);
    if (r->watched < 0)
        NOTE(r->agent, LEVEL_WARN, "progress.unwatched", LOG_NUMBER("id", (int64_t)r->id));
    read_progress(r);
}

void usage_poll_end(struct agent_instance *r)
{
    if (r->watched < 0)
        return;
    read_progress(r);
    (void)inotify_rm_watch(r->agent->look->inotify, r->watched);
    r->watched = -1;
}

/* ---- lifetime --------------------------------------------------------------------------------------------------- */

int usage_poll_new(struct agent *a, struct usage_poll **ret, struct berth_err *err)
{
    struct usage_poll *l = mem_zalloc(sizeof *l);
    l->agent = a;
    l->config = (struct probe_config){.root = "",
                                      .plugins = a->options->plugins,
                                      .disk = state_dir_path(a->state_dir),
                                      .reserve = a->options->reserve,
                                      .bandwidth_bytes = a->options->bandwidth_bytes};
    l->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    int rc = l->inotify < 0 ? err_set(err, errno, "cannot watch folders: %s", strerror(errno)) : 0;
    if (rc == 0)
        rc = loop_watch_fd(a->loop, l->inotify, EPOLLIN, on_readable, l, &l->source, err);
    l->use = probe_use_new(&l->config);
    l->prober = worker_new(a->loop);
    l->timer = loop_timer_new(a->loop, usage_poll_tick, l);
    loop_timer_set(l->timer, loop_now_ns(a->loop) + SECOND_NS);
    if (rc < 0) {
        usage_poll_free(l);
        return rc;
    }
    *ret = l;
    return 0;
}

void usage_poll_free(struct usage_poll *l)
{
    if (!l)
        return;
    worker_free(l->prober);
    json_decref(l->probed);
    loop_source_free(l->timer);
    loop_source_free(l->source);
    probe_use_free(l->use);
    if (l->inotify >= 0)
        (void)close(l->inotify);
    mem_free(l);
}
