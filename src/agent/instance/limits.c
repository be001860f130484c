/* limits.c - limits of an instance: applied before it starts, changed, polled, removed.
 *
 * The kernel enforces the limits of cgroups (machine/cgroup/cgroup.h) and of the network (machine/net/net_limit.h).
 * Disk use is counted periodically on a separate thread (machine/cgroup/disk_limit.h). Limits that are not enforced or
 * are exceeded are reported.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/agent_parts.h"
#include "agent/instance/ports.h"
#include "machine/cgroup/disk_limit.h"
#include "machine/cgroup/limit_names.h"
#include "machine/net/net_limit.h"
#include "machine/vm/vm.h"
#include "wire/text/quantity.h"

#define DISK_NS (30 * SECOND_NS)      /* interval between disk counts of one instance */
#define DISK_ABOVE_NS (2 * SECOND_NS) /* the same for an instance above its limit */

struct instance_limits {
    struct cgroup_limits group;
    struct net_limits net;
    struct disk_limit disk;
    char other[CGROUP_LIST_MAX]; /* names that this agent does not know */
};

/* Reads the limits of the configuration. A virtual machine also has the limits of its flavor; its guest keeps the
 * memory that it started with. */
static int limits_read(const struct agent_instance *r, struct instance_limits *ret, struct berth_err *err)
{
    static const char *const known[] = {"network", "network-in", "network-out",
                                        "storage", "traffic",    "traffic-throttle"};
    const json_t *config = r->config;
    *ret = (struct instance_limits){0};
    int rc = cgroup_limits_read(config, &ret->group, ret->other, err);
    rc = rc < 0 ? rc : net_limits_read(config, &ret->net, err);
    rc = rc < 0 ? rc : disk_limit_read(config, &ret->disk, err);
    for (size_t i = 0; rc == 0 && i < sizeof known / sizeof *known; i++)
        (void)limit_names_take(ret->other, known[i]);
    if (rc == 0 && image_is_vm(config)) {
        vm_limits(&ret->group, config);
        ret->group.memory_bytes = r->guest_bytes ? r->guest_bytes : ret->group.memory_bytes;
    }
    return rc;
}

static const char *unified(const struct agent_instance *r, char buf[static STATE_PATH_MAX])
{
    return cgroup_unified(r->agent->cgroups, r->group, buf, STATE_PATH_MAX);
}

/* Applies the limits other than the cgroup's, and adds those that are not enforced to r->unenforced. */
static void rest_put(struct agent_instance *r, const struct instance_limits *l)
{
    char path[STATE_PATH_MAX], net[CGROUP_LIST_MAX];
    if (l->net.wanted || r->counted) {
        net_limiter_put(r->agent->nets, r->id, unified(r, path), &l->net, agent_clock_ns(), net);
        limit_names_join(r->unenforced, net);
        r->counted = l->net.wanted;
    }
    limit_names_join(r->unenforced, l->other);
    limit_names_join(r->unenforced, r->gpu_unenforced);
    if (l->disk.bytes && !l->disk.whole)
        limit_names_put(r->unenforced, "storage");
}

int limits_begin(struct agent_instance *r)
{
    struct instance_limits l;
    int rc = limits_read(r, &l, &r->err);
    if (rc == 0 && image_is_vm(r->config))
        r->guest_bytes = l.group.memory_bytes;
    if (rc == 0)
        rc = cgroup_make(r->agent->cgroups, r->group, &l.group, r->unenforced, &r->err);
    if (rc == 0) {
        char path[STATE_PATH_MAX];
        rest_put(r, &l);
        ports_guard(r, unified(r, path));
    }
    return rc;
}

int limits_change(struct agent_instance *r)
{
    struct instance_limits l;
    int rc = limits_read(r, &l, &r->err);
    if (rc < 0)
        return rc;
    rc = cgroup_set(r->agent->cgroups, r->group, &l.group, r->unenforced, &r->err);
    rest_put(r, &l);
    return rc;
}

/* Restores from the instance directory what cannot be queried again: unenforced GPU limits and the guest's memory. */
static void limits_restore(struct agent_instance *r)
{
    CLEANUP(mem) char *text = NULL, *gpus = NULL;
    struct cgroup_limits first = {0};
    char other[CGROUP_LIST_MAX];
    if (instance_dir_read(r->agent->state_dir, r->id, "gpu-unenforced", &gpus, NULL) == 0)
        (void)snprintf(r->gpu_unenforced, sizeof r->gpu_unenforced, "%s", gpus);
    if (!image_is_vm(r->config) || instance_dir_read(r->agent->state_dir, r->id, "config.json", &text, NULL) < 0)
        return;
    CLEANUP(json) json_t *began = json_loads(text, 0, NULL);
    if (cgroup_limits_read(began, &first, other, NULL) < 0)
        return;
    vm_limits(&first, began);
    r->guest_bytes = first.memory_bytes;
}

void limits_adopt(struct agent_instance *r)
{
    char path[STATE_PATH_MAX];
    limits_restore(r);
    ports_guard(r, unified(r, path));
    if (json_object_size(r->config) == 0) /* unreadable configuration: keep the limits in force */
        (void)err_set(&r->err, ENODATA, "its configuration cannot be read; the limits are unchanged");
    else if (limits_change(r) == 0)
        return;
    NOTE(r->agent, LEVEL_WARN, "instance.unlimited", LOG_NUMBER("id", (int64_t)r->id), LOG_TEXT("text", r->err.text));
}

void limits_end(struct agent_instance *r)
{
    char path[STATE_PATH_MAX];
    struct net_limits limits;
    if (r->counted || (net_limits_read(r->config, &limits, NULL) == 0 && limits.wanted)) {
        /* including counters that an earlier agent set up */
        struct net_counts last = net_limiter_end(r->agent->nets, r->id, unified(r, path));
        r->net = last.in + last.out > 0 ? last : r->net;
    }
    r->counted = false;
}

/* ---- the disk --------------------------------------------------------------------------------------------------- */

/* Counts one instance at a time; the others wait for a later poll. */
struct disks {
    struct agent *agent;
    struct worker *worker;
    uint64_t id; /* instance being counted; 0: none */
    json_t *config;
    int64_t bytes;
    int rc;
};

struct disks *disks_new(struct agent *a)
{
    struct disks *d = mem_zalloc(sizeof *d);
    *d = (struct disks){.agent = a, .worker = worker_new(a->loop)};
    return d;
}

void disks_free(struct disks *d)
{
    if (!d)
        return;
    worker_free(d->worker);
    json_decref(d->config);
    mem_free(d);
}

static void disk_work(void *ctx)
{
    struct disks *d = ctx;
    d->rc = disk_bytes(d->agent->state_dir, d->id, d->config, &d->bytes);
}

/* Compares a completed count with the limit. */
static void disk_limit_check(struct agent_instance *r)
{
    struct instance_limits l;
    struct limit_verdict verdict;
    if (r->phase != INSTANCE_RUNNING || r->busy || limits_read(r, &l, NULL) < 0)
        return;
    const struct limit_sample sample = {"storage", r->disk_bytes, l.disk.bytes, false};
    limit_watch_update(&r->disk_limits, &sample, 1, &verdict);
    r->disk_over = verdict.over[0] != '\0';
    limits_report(r);
    if (verdict.act == LIMIT_KILL)
        limits_stop(r, verdict.text, true);
}

static void disk_after(void *ctx)
{
    struct disks *d = ctx;
    struct agent_instance *r = instance_find(d->agent, d->id);
    json_decref(take_ptr(&d->config));
    d->id = 0;
    if (!r)
        return;
    r->disk_unknown = d->rc < 0;
    r->disk_ns = agent_boottime_ns();
    if (d->rc < 0)
        return;
    r->disk_bytes = d->bytes;
    disk_limit_check(r);
}

static bool disk_is_due(const struct agent_instance *r, const struct disk_limit *limit, int64_t now_ns)
{
    int64_t every_ns = limit->bytes && r->disk_bytes > limit->bytes ? DISK_ABOVE_NS : DISK_NS;
    return limit->wanted && (!r->disk_ns || now_ns - r->disk_ns >= every_ns);
}

/* Counts the due instance that has waited longest; an instance above its limit is due at every poll and must not starve
 * the others. */
static void disk_count(struct agent *a)
{
    struct disks *d = a->disks;
    struct agent_instance *r = NULL;
    for (size_t i = 0; !d->id && i < a->runs.len; i++) {
        struct agent_instance *other = a->runs.at[i];
        if (other->disk_due && other->phase == INSTANCE_RUNNING && !other->busy && (!r || other->disk_ns < r->disk_ns))
            r = other;
    }
    if (!r)
        return;
    r->disk_due = false;
    d->id = r->id;
    d->config = json_deep_copy(r->config);
    worker_run(d->worker, disk_work, disk_after, d);
}

/* ---- polling ---------------------------------------------------------------------------------------------------- */

/* Network usage since the last poll. */
struct net_usage {
    bool counted, rated;
    struct net_limit_status look;
    int64_t in, out; /* bytes a second; valid if `rated` */
};

static struct net_usage net_usage_poll(struct agent_instance *r, int64_t now_ns)
{
    struct net_usage s = {0};
    int64_t passed_ns = now_ns - r->net_ns;
    s.counted = net_limiter_poll(r->agent->nets, r->id, agent_clock_ns(), &s.look) == 0;
    if (s.counted && r->net_ns && passed_ns > 0) {
        s.rated = true;
        s.in = (int64_t)((__int128)(s.look.counts.in - r->net.in) * SECOND_NS / passed_ns);
        s.out = (int64_t)((__int128)(s.look.counts.out - r->net.out) * SECOND_NS / passed_ns);
    }
    r->net = s.look.counts;
    r->net_ns = now_ns;
    return s;
}

/* Updates r->unenforced: network limits may stop or start being enforced while the instance runs. */
static void net_unenforced(struct agent_instance *r, const char *now)
{
    static const char *const names[] = {"network", "network-in", "network-out", "traffic", "traffic-throttle"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)limit_names_take(r->unenforced, names[i]);
    limit_names_join(r->unenforced, now);
}

void limits_report(struct agent_instance *r)
{
    char over[CGROUP_LIST_MAX];
    memcpy(over, r->over, sizeof over);
    if (r->gpu_over)
        limit_names_put(over, "gpu-memory");
    if (r->disk_over)
        limit_names_put(over, "storage");
    node_limit_state(r->agent->node, r->id, r->unenforced, over);
}

void limits_stop(struct agent_instance *r, const char *text, bool now)
{
    if (r->stop_asked)
        return;
    NOTE(r->agent, LEVEL_WARN, "instance.over-limit", LOG_NUMBER("id", (int64_t)r->id), LOG_TEXT("text", text));
    (void)snprintf(r->killed, sizeof r->killed, "%s", text);
    agent_machine.stop(r->agent, r->id, now);
}

/* Adds the samples of the network. The limit `network` applies to the directions that have no limit of their own. */
static size_t net_samples(const struct instance_limits *l, const struct net_usage *s, struct limit_sample *to)
{
    const char *given = l->net.given;
    bool in = limit_names_has(given, "network-in"), out = limit_names_has(given, "network-out");
    int64_t most = s->in > s->out ? s->in : s->out;
    size_t len = 0;
    if (s->rated && limit_names_has(given, "network") && !(in && out))
        to[len++] = (struct limit_sample){"network",
                                          in    ? s->out
                                          : out ? s->in
                                                : most,
                                          in ? l->net.out.amount : l->net.in.amount, true};
    if (s->rated && in)
        to[len++] = (struct limit_sample){"network-in", s->in, l->net.in.amount, true};
    if (s->rated && out)
        to[len++] = (struct limit_sample){"network-out", s->out, l->net.out.amount, true};
    if (s->counted)
        to[len++] = (struct limit_sample){"traffic", s->look.period_bytes, l->net.traffic_bytes, true};
    return len;
}

/* Compares usage with limits, including limits that the kernel does not enforce, and stops an instance that exceeds
 * them. */
static void limits_check(struct agent_instance *r, const struct instance_limits *l, const struct cgroup_usage *used,
                         const struct net_usage *s, int64_t now_ns)
{
    struct limit_sample samples[LIMIT_SAMPLES_MAX];
    struct limit_verdict verdict = {0};
    char text[LAUNCH_TEXT_MAX], amount[QUANTITY_TEXT_MAX];
    size_t len = limit_watch_samples(&r->limits, &l->group, r->unenforced, used, now_ns, samples);
    len += net_samples(l, s, &samples[len]);
    limit_watch_update(&r->limits, samples, len, &verdict);
    memcpy(r->over, verdict.over, sizeof r->over);
    limits_report(r);
    r->oom_killed = r->oom_killed || (verdict.act == LIMIT_KILL && verdict.memory);
    if (verdict.act == LIMIT_KILL)
        limits_stop(r, verdict.text, true);
    if (!s->look.spent)
        return;
    (void)snprintf(text, sizeof text, "stopped: reached its traffic limit of %s%s",
                   quantity_print("traffic", l->net.traffic_bytes, amount),
                   l->net.period_ns ? " in this period" : "; use a higher limit");
    limits_stop(r, text, false);
}

/* used: NULL if the cgroup cannot be read */
static void report_usage(const struct agent_instance *r, const struct instance_limits *l,
                         const struct cgroup_usage *used, const struct net_usage *s, int64_t now_ns)
{
    int64_t past_ns = now_ns - r->used_ns;
    struct berth_amount amounts[6];
    size_t len = 0;
    if (used) {
        amounts[len++] = (struct berth_amount){"memory", used->memory_bytes};
        amounts[len++] = (struct berth_amount){"pids", used->pids};
    }
    if (used && r->used_ns && past_ns > 0) /* a CPU rate needs two polls */
        amounts[len++] = (struct berth_amount){"cpu", (used->cpu_ns - r->used.cpu_ns) * 1000 / past_ns};
    if (s->rated) {
        amounts[len++] = (struct berth_amount){"network-in", s->in};
        amounts[len++] = (struct berth_amount){"network-out", s->out};
    }
    if (s->counted)
        node_total_usage(r->agent->node, r->id, "traffic", s->look.counts.in + s->look.counts.out);
    if (l->disk.wanted && r->disk_ns)
        amounts[len++] = (struct berth_amount){"storage", r->disk_bytes};
    node_usage(r->agent->node, r->id, amounts, len);
}

/* Clears the exceeded state after the disk limit was removed. */
static void disk_forget(struct agent_instance *r, const struct disk_limit *limit)
{
    if (limit->bytes || !r->disk_over)
        return;
    r->disk_over = false;
    memset(&r->disk_limits, 0, sizeof r->disk_limits);
    limits_report(r);
}

void limits_poll(struct agent_instance *r, int64_t now_ns)
{
    struct cgroup_usage used = {0};
    struct instance_limits l;
    ports_poll(r);
    if (limits_read(r, &l, NULL) < 0)
        return;
    disk_forget(r, &l.disk);
    struct net_usage s = r->counted ? net_usage_poll(r, now_ns) : (struct net_usage){0};
    bool known = cgroup_usage(r->agent->cgroups, r->group, &used) == 0;
    if (!known && !s.counted && !l.disk.wanted)
        return;
    r->disk_due = disk_is_due(r, &l.disk, now_ns);
    if (r->disk_due)
        disk_count(r->agent);
    if (l.disk.bytes && l.disk.whole && r->disk_unknown)
        limit_names_put(r->unenforced, "storage");
    else if (l.disk.bytes && l.disk.whole)
        (void)limit_names_take(r->unenforced, "storage");
    if (s.counted)
        net_unenforced(r, s.look.unenforced);
    report_usage(r, &l, known ? &used : NULL, &s, now_ns);
    limits_check(r, &l, &used, &s, now_ns);
    r->used = used;
    r->used_ns = now_ns;
}
