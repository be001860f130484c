/* look.c - looks at what instances and the machine use, and hears what instances say of their progress.
 *
 * Instances are looked at one after the other, a slice every second, so that a thousand of them cost no more at once than
 * ten. Their progress is a file that their shim replaces: inotify tells.
 */
#include <errno.h>
#include <inttypes.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "agent/agent_parts.h"

enum { ROUND_S = 10, TRIM_S = 60, IMAGES_S = 24 * 3600, PROBE_ROUNDS = 60 };

struct look {
    struct agent *agent;
    struct loop_source *timer, *source;
    struct probe_use *use;
    struct probe_config config;
    unsigned rounds;
    struct worker *prober; /* plugins may take their time */
    json_t *probed;
    bool probing;
    int inotify;
    size_t next; /* of the runs */
    unsigned seconds;
};

/* ---- use ----------------------------------------------------------------------------------------------------------- */

/* What it uses above its limits although it should not be able to. */
static void judge_limits(struct run *r, const struct cgroup_usage *used, int64_t now_ns)
{
    struct cgroup_limits limits = {0};
    struct limit_sample samples[LIMIT_SAMPLES_MAX];
    struct limit_verdict verdict = {0};
    char other[CGROUP_LIST_MAX];
    if (cgroup_limits_read(r->config, &limits, other, NULL) < 0)
        return;
    size_t len = limit_watch_samples(&r->limits, &limits, r->unenforced, used, now_ns, samples);
    limit_watch_look(&r->limits, samples, len, &verdict);
    node_trouble(r->agent->node, r->id, r->unenforced, verdict.over);
    if (verdict.act != LIMIT_KILL || r->stop_asked)
        return;
    NOTE(r->agent, LEVEL_WARN, "instance.over-limit", LOG_NUMBER("id", (int64_t)r->id), LOG_TEXT("text", verdict.text));
    (void)snprintf(r->killed, sizeof r->killed, "%s", verdict.text);
    agent_machine.stop(r->agent, r->id, true);
}

static void look_at(struct run *r, int64_t now_ns)
{
    struct cgroup_usage used;
    if (cgroup_usage(r->agent->cgroups, r->group, &used) < 0)
        return;
    int64_t past_ns = now_ns - r->used_ns;
    struct berth_amount amounts[] = {
        {.resource = "memory", .amount = used.memory_bytes                                                },
        {.resource = "pids",   .amount = used.pids                                                        },
        {.resource = "cpu",    .amount = past_ns > 0 ? (used.cpu_ns - r->used.cpu_ns) * 1000 / past_ns : 0},
    };
    size_t len = r->used_ns && past_ns > 0 ? 3 : 2; /* cpu takes two looks */
    node_usage(r->agent->node, r->id, amounts, len);
    judge_limits(r, &used, now_ns);
    r->used = used;
    r->used_ns = now_ns;
}

static void probe_work(void *ctx)
{
    struct look *l = ctx;
    json_t *machine = NULL;
    l->probed = probe_use_look(l->use, agent_boottime_ns());
    /* What there is changes seldom: a disk, a pool of huge pages, a device. */
    if (l->rounds++ % PROBE_ROUNDS == 0 && probe_machine(&l->config, &machine, NULL) == 0)
        (void)json_object_set_new(l->probed, "probed", machine);
}

static void probe_after(void *ctx)
{
    struct look *l = ctx;
    l->probing = false;
    node_self(l->agent->node, take_ptr(&l->probed));
}

static void probe(struct look *l)
{
    if (l->probing)
        return;
    l->probing = true;
    worker_run(l->prober, probe_work, probe_after, l);
}

static void logs_work(void *ctx)
{
    const struct agent *a = ctx;
    logs_trim(a->place, a->options->log_mib << 20, INT64_MAX, agent_clock_ns());
}

static void look_around(void *ctx)
{
    struct look *l = ctx;
    struct agent *a = l->agent;
    int64_t now_ns = agent_boottime_ns();
    size_t slice = a->runs.len / ROUND_S + 1;
    for (size_t i = 0; i < slice && i < a->runs.len; i++) {
        l->next = l->next + 1 < a->runs.len ? l->next + 1 : 0;
        if (a->runs.at[l->next]->phase == RUN_LIVING && !a->runs.at[l->next]->busy)
            look_at(a->runs.at[l->next], now_ns);
    }
    if (l->seconds++ % ROUND_S == 0)
        probe(l);
    if (l->seconds % TRIM_S == 0)
        worker_run(l->prober, logs_work, NULL, a);
    if (l->seconds % IMAGES_S == 1) /* first of all what a crash has left */
        trim_images(a);
    loop_timer_set(l->timer, loop_now_ns(a->loop) + SECOND_NS);
}

/* ---- progress ------------------------------------------------------------------------------------------------------ */

static void read_progress(struct run *r)
{
    char note[LAUNCH_TEXT_MAX] = "";
    int milli = -1;
    if (launch_progress(r->agent->place, r->id, &milli, note) == 0)
        node_progress(r->agent->node, r->id, milli, note);
}

static struct run *run_watched(const struct agent *a, int watch)
{
    for (size_t i = 0; i < a->runs.len; i++)
        if (a->runs.at[i]->watched == watch)
            return a->runs.at[i];
    return NULL;
}

static void heard(void *ctx, uint32_t events)
{
    struct look *l = ctx;
    char buf[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
    (void)events;
    ssize_t len = read(l->inotify, buf, sizeof buf);
    for (const char *at = buf; len > 0 && at < buf + len;) {
        const struct inotify_event *event = (const void *)at;
        struct run *r = event->len && strcmp(event->name, "progress") == 0 ? run_watched(l->agent, event->wd) : NULL;
        if (r)
            read_progress(r);
        at += sizeof *event + event->len;
    }
}

void look_begin(struct run *r)
{
    char path[PLACE_PATH_MAX], name[24];
    if (place_path(r->agent->place, "instances", str_u64(r->id, name), path) == 0)
        r->watched = inotify_add_watch(r->agent->look->inotify, path, IN_MOVED_TO | IN_ONLYDIR);
    if (r->watched < 0)
        NOTE(r->agent, LEVEL_WARN, "progress.unwatched", LOG_NUMBER("id", (int64_t)r->id));
    read_progress(r);
}

void look_end(struct run *r)
{
    if (r->watched < 0)
        return;
    read_progress(r);
    (void)inotify_rm_watch(r->agent->look->inotify, r->watched);
    r->watched = -1;
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

int look_new(struct agent *a, struct look **ret, struct berth_err *err)
{
    struct look *l = mem_zalloc(sizeof *l);
    l->agent = a;
    l->config = (struct probe_config){
        .root = "", .plugins = a->options->plugins, .disk = place_dir(a->place), .reserve = a->options->reserve};
    l->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    int rc = l->inotify < 0 ? err_set(err, errno, "cannot watch folders: %s", strerror(errno)) : 0;
    if (rc == 0)
        rc = loop_watch_fd(a->loop, l->inotify, EPOLLIN, heard, l, &l->source, err);
    l->use = probe_use_new(&l->config);
    l->prober = worker_new(a->loop);
    l->timer = loop_timer_new(a->loop, look_around, l);
    loop_timer_set(l->timer, loop_now_ns(a->loop) + SECOND_NS);
    if (rc < 0) {
        look_free(l);
        return rc;
    }
    *ret = l;
    return 0;
}

void look_free(struct look *l)
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
