/* gpu.c - polls GPUs and the processes that use them. */
#include "agent/instance/gpu.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent_parts.h"
#include "machine/gpu/nvml_file.h"
#include "machine/gpu/probe_gpu.h"
#include "wire/text/quantity.h"

#define EVERY_NS (5 * SECOND_NS)
#define EVERY_NS_MIN (SECOND_NS / 2)
#define SILENT_NS (60 * SECOND_NS)
#define FIRST_NS (10 * SECOND_NS) /* wait for the first answer after the start */
#define END_NS SECOND_NS          /* wait for a pending answer at shutdown */

enum { MINORS = 256 }; /* minor numbers of NVIDIA device files: the kernel assigns at most 256 */

static const char silence[] = "the NVIDIA driver has not answered for more than a minute";

/* Usage of one device by one instance. */
struct gpu_usage {
    char group[CGROUP_LIST_MAX], uuid[NVML_UUID_MAX];
    int64_t bytes, milli;
};
typedef VEC(struct gpu_usage) gpu_uses;

struct gpu_monitor {
    struct agent *agent;
    struct loop_source *timer;
    struct worker *worker;
    struct nvml *nvml; /* used by the worker only */
    bool looking;
    int64_t began_ns;
    pthread_mutex_t lock; /* protects all fields below */
    pthread_cond_t answered;
    bool asking; /* a query of the driver is pending */
    bool left;   /* `struct gpu_monitor` is abandoned; the pending query must not use it */
    struct nvml_snapshot look;
    gpu_uses uses;
    json_t *said;      /* last result of gpu_monitor_add_inventory; NULL: none */
    int64_t looked_ns; /* 0: not polled yet */
};

/* ---- polling, on the worker ------------------------------------------------------------------------------------- */

static void use_add(gpu_uses *uses, const char *group, const struct nvml_gpu *g, const struct nvml_process *p)
{
    size_t i = 0;
    while (i < uses->len && (strcmp(uses->at[i].group, group) != 0 || strcmp(uses->at[i].uuid, g->uuid) != 0))
        i++;
    if (i == uses->len) {
        struct gpu_usage fresh = {0};
        (void)snprintf(fresh.group, sizeof fresh.group, "%s", group);
        (void)snprintf(fresh.uuid, sizeof fresh.uuid, "%s", g->uuid);
        vec_push(uses, fresh);
    }
    uses->at[i].bytes += p->memory_bytes > 0 ? p->memory_bytes : 0;
    uses->at[i].milli += p->milli > 0 ? p->milli : 0;
}

static void uses_find(const struct cgroups *cgroups, const struct nvml_snapshot *look, gpu_uses *ret)
{
    char group[CGROUP_LIST_MAX];
    for (size_t i = 0; i < look->gpus_len; i++)
        for (size_t k = 0; k < look->gpus[i].processes_len; k++)
            if (cgroup_of_process(cgroups, look->gpus[i].processes[k].pid, group) == 0)
                use_add(ret, group, &look->gpus[i], &look->gpus[i].processes[k]);
}

static void poll_gpus_on_worker(void *ctx)
{
    struct gpu_monitor *g = ctx;
    struct nvml_snapshot *look = mem_zalloc(sizeof *look);
    gpu_uses uses = {0};
    (void)pthread_mutex_lock(&g->lock);
    g->asking = true;
    (void)pthread_mutex_unlock(&g->lock);
    nvml_snapshot_take(g->nvml, look);
    (void)pthread_mutex_lock(&g->lock);
    g->asking = false;
    bool left = g->left;
    (void)pthread_cond_broadcast(&g->answered);
    (void)pthread_mutex_unlock(&g->lock);
    if (left)
        return;
    uses_find(g->agent->cgroups, look, &uses);
    (void)pthread_mutex_lock(&g->lock);
    nvml_snapshot_done(&g->look);
    vec_done(&g->uses);
    g->look = *look;
    memcpy(&g->uses, &uses, sizeof uses);
    g->looked_ns = agent_boottime_ns();
    (void)pthread_cond_broadcast(&g->answered);
    (void)pthread_mutex_unlock(&g->lock);
    mem_free(look);
}

/* ---- waiting, with the lock held -------------------------------------------------------------------------------- */

static void wait_until(struct gpu_monitor *g, int64_t steady_ns)
{
    const struct timespec at = {.tv_sec = steady_ns / SECOND_NS, .tv_nsec = steady_ns % SECOND_NS};
    (void)pthread_cond_timedwait(&g->answered, &g->lock, &at);
}

static int64_t steady_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

/* Waits for the first answer, until FIRST_NS after the start. */
static void first_wait(struct gpu_monitor *g)
{
    while (!g->looked_ns && steady_ns() < g->began_ns + FIRST_NS)
        wait_until(g, g->began_ns + FIRST_NS);
}

static bool is_silent(const struct gpu_monitor *g)
{
    return g->looked_ns ? agent_boottime_ns() - g->looked_ns > SILENT_NS : steady_ns() - g->began_ns > SILENT_NS;
}

/* ---- usage by instances, on the loop ---------------------------------------------------------------------------- */

static int grant_make(const struct gpu_monitor *g, const json_t *config, bool well, struct gpu_assignment *ret,
                      struct berth_err *err);

/* Includes unhealthy GPUs, because usage still counts against the shares of others. */
static void gpu_usage_report(struct gpu_monitor *g, struct agent_instance *r)
{
    struct gpu_assignment grant;
    int64_t bytes = 0, milli = 0;
    if (grant_make(g, r->config, false, &grant, NULL) < 0 || !grant.nvidia)
        return;
    for (size_t i = 0; i < g->uses.len; i++)
        for (size_t k = 0; k < grant.len; k++)
            if (strcmp(g->uses.at[i].group, r->group) == 0 && strcmp(g->uses.at[i].uuid, grant.at[k].uuid) == 0) {
                bytes += g->uses.at[i].bytes;
                milli += g->uses.at[i].milli;
            }
    const struct berth_amount amounts[] = {
        {.resource = "gpu-memory", .amount = bytes},
        {.resource = "gpu-milli",  .amount = milli},
    };
    node_usage(r->agent->node, r->id, amounts, 2);
    const struct limit_sample sample = {"gpu-memory", bytes, grant.share_bytes, false};
    struct limit_verdict verdict;
    limit_watch_update(&r->gpu_limits, &sample, 1, &verdict);
    r->gpu_over = verdict.over[0] != '\0';
    limits_report(r);
    if (verdict.act == LIMIT_KILL)
        limits_stop(r, verdict.text, true);
}

static void on_look_done(void *ctx)
{
    struct gpu_monitor *g = ctx;
    const struct agent *a = g->agent;
    g->looking = false;
    for (size_t i = 0; i < a->runs.len; i++) {
        struct agent_instance *r = a->runs.at[i];
        if (r->phase == INSTANCE_RUNNING && !r->busy && json_array_size(json_object_get(r->config, "gpus")))
            gpu_usage_report(g, r);
    }
    if (gpu_monitor_changed(g)) /* a lost GPU must be reported at once, so that nothing more is placed on it */
        usage_poll_probe(a->look);
}

/* At the report interval, bounded, so that every report has fresh values. */
static int64_t every_ns(const struct gpu_monitor *g)
{
    int64_t beat_ns = (int64_t)g->agent->options->heartbeat_ms * 1000000;
    return beat_ns == 0 || beat_ns > EVERY_NS ? EVERY_NS : beat_ns < EVERY_NS_MIN ? EVERY_NS_MIN : beat_ns;
}

static void on_look_due(void *ctx)
{
    struct gpu_monitor *g = ctx;
    if (!g->looking) {
        g->looking = true;
        worker_run(g->worker, poll_gpus_on_worker, on_look_done, g);
    }
    loop_timer_set(g->timer, loop_now_ns(g->agent->loop) + every_ns(g));
}

/* ---- assignment ------------------------------------------------------------------------------------------------- */

/* Finds the device by UUID or, without one, by its index among the usable devices (GPUs split into MIG devices are
 * skipped). */
static const struct nvml_gpu *device_find(const struct nvml_snapshot *look, const char *uuid, int64_t number)
{
    int64_t at = 0;
    for (size_t i = 0; i < look->gpus_len; i++) {
        const struct nvml_gpu *g = &look->gpus[i];
        if (g->split)
            continue;
        if (uuid ? strcmp(g->uuid, uuid) == 0 : at == number)
            return g;
        at++;
    }
    return NULL;
}

/* `well`: rejects an unhealthy device, because it is to be used and not only watched. */
static int assigned_gpu_fill(const struct gpu_monitor *g, const json_t *config, size_t i, bool well,
                             struct assigned_gpu *ret, struct berth_err *err)
{
    int64_t number = json_integer_value(json_array_get(json_object_get(config, "gpus"), i));
    const char *uuid = json_string_value(json_array_get(json_object_get(config, "gpu_uuids"), i));
    const struct nvml_gpu *gpu = device_find(&g->look, uuid, number);
    *ret = (struct assigned_gpu){.number = (int)number, .minor = -1, .instance = -1, .compute = -1, .memory_bytes = -1};
    if (!gpu && !uuid && g->looked_ns && !g->look.there)
        return 0; /* a GPU of another vendor: only its index is known */
    if (!gpu && (!g->looked_ns || *g->look.trouble))
        return err_set(err, ENODEV, "its GPUs are not available: %.180s",
                       g->looked_ns ? g->look.trouble : "the NVIDIA driver does not answer");
    if (!gpu && uuid)
        return err_set(err, ENODEV, "GPU %.90s is no longer on this machine", uuid);
    if (!gpu)
        return err_set(err, ENODEV, "this machine has no GPU %" PRId64, number);
    if (well && !gpu->healthy)
        return err_set(err, ENODEV, "GPU %.90s: %s", gpu->uuid, gpu->trouble);
    (void)snprintf(ret->uuid, sizeof ret->uuid, "%s", gpu->uuid);
    ret->minor = gpu->minor;
    ret->instance = gpu->instance;
    ret->compute = gpu->compute;
    ret->memory_bytes = gpu->memory_bytes;
    return 0;
}

static void share_fill(const json_t *config, struct gpu_assignment *grant)
{
    int64_t milli = json_integer_value(json_object_get(config, "gpu_milli")), bytes = 0;
    const json_t *memory = json_object_get(config, "gpu_memory");
    if (milli <= 0 || milli >= BERTH_GPU_MILLI || grant->len != 1)
        return;
    grant->share_milli = (int)milli;
    if (memory && quantity_parse("memory", memory, &bytes, NULL) == 0)
        grant->share_bytes = bytes;
    else if (grant->at[0].memory_bytes > 0)
        grant->share_bytes = (int64_t)((__int128)grant->at[0].memory_bytes * milli / BERTH_GPU_MILLI);
}

/* Until the first poll has completed, a driver may be present. */
static bool may_have_nvidia(const struct gpu_monitor *g)
{
    return !g->looked_ns || g->look.there || access("/dev/nvidiactl", F_OK) == 0;
}

static int grant_make(const struct gpu_monitor *g, const json_t *config, bool well, struct gpu_assignment *ret,
                      struct berth_err *err)
{
    size_t len = json_array_size(json_object_get(config, "gpus"));
    int rc = 0;
    memset(ret, 0, sizeof *ret);
    ret->nvidia = may_have_nvidia(g);
    for (size_t i = 0; rc == 0 && i < len && i < NVML_GPUS_MAX; i++) {
        rc = assigned_gpu_fill(g, config, i, well, &ret->at[i], err);
        ret->len += rc == 0;
    }
    if (rc == 0)
        share_fill(config, ret);
    return rc;
}

int gpu_monitor_assign(struct gpu_monitor *g, const json_t *config, struct gpu_assignment *ret, struct berth_err *err)
{
    (void)pthread_mutex_lock(&g->lock);
    first_wait(g);
    int rc = grant_make(g, config, true, ret, err);
    if (rc == 0 && ret->len && ret->nvidia && is_silent(g))
        rc = err_set(err, ENODEV, "its GPUs are not available: %s", silence);
    (void)pthread_mutex_unlock(&g->lock);
    return rc;
}

static bool is_granted(const struct gpu_assignment *grant, const struct nvml_gpu *gpu)
{
    for (size_t i = 0; i < grant->len; i++)
        if (grant->at[i].minor == gpu->minor || (*gpu->uuid && strcmp(grant->at[i].uuid, gpu->uuid) == 0))
            return true;
    return false;
}

/* Used if the device file of an assigned GPU is unknown: allows all GPU device files except those that are known to
 * belong to other GPUs. */
static int confine_loosely(const struct agent *a, const char *group, const struct gpu_assignment *grant)
{
    unsigned minors[MINORS];
    bool others[MINORS] = {false};
    size_t len = 0;
    (void)pthread_mutex_lock(&a->gpus->lock);
    for (size_t i = 0; i < a->gpus->look.gpus_len; i++) {
        const struct nvml_gpu *gpu = &a->gpus->look.gpus[i];
        if (gpu->minor >= 0 && gpu->minor < MINORS && !is_granted(grant, gpu))
            others[gpu->minor] = true;
    }
    (void)pthread_mutex_unlock(&a->gpus->lock);
    for (unsigned i = 0; i < MINORS; i++)
        if (!others[i])
            minors[len++] = i;
    int rc = cgroup_devices_only(a->cgroups, group, NVML_MAJOR, minors, len);
    return rc < 0 ? rc : -ENODATA;
}

int gpu_monitor_confine(const struct agent *a, const char *group, const struct gpu_assignment *grant)
{
    unsigned minors[NVML_GPUS_MAX + 2] = {NVML_MINOR_CONTROL, NVML_MINOR_MODESET}, caps[NVML_FILES_MAX];
    size_t len = 2, caps_len = 0;
    CLEANUP(mem) struct nvml_files *files = mem_zalloc(sizeof *files);
    if (!grant->nvidia)
        return 0;
    for (size_t i = 0; i < grant->len; i++) {
        if (grant->at[i].minor < 0)
            return confine_loosely(a, group, grant);
        minors[len++] = (unsigned)grant->at[i].minor;
        nvml_files_add(files, grant->at[i].minor, grant->at[i].instance, grant->at[i].compute);
    }
    int rc = cgroup_devices_only(a->cgroups, group, NVML_MAJOR, minors, len);
    unsigned caps_major = rc == 0 ? nvml_caps_major() : 0;
    for (size_t i = 0; caps_major && i < files->len; i++)
        if (files->at[i].major == caps_major)
            caps[caps_len++] = files->at[i].minor;
    return caps_major ? cgroup_devices_only(a->cgroups, group, caps_major, caps, caps_len) : rc;
}

/* ---- reporting -------------------------------------------------------------------------------------------------- */

void gpu_monitor_report(struct gpu_monitor *g, json_t *self)
{
    (void)pthread_mutex_lock(&g->lock);
    probe_gpus_use(&g->look, self);
    bool silent = is_silent(g);
    (void)pthread_mutex_unlock(&g->lock);
    json_t *conditions = json_object_get(self, "conditions");
    if (silent && conditions)
        (void)json_array_append_new(conditions, json_pack("{s:s, s:s}", "type", "GpuFailed", "text", silence));
}

/* Returns the GPUs; all are unhealthy while the driver does not answer. */
static json_t *probe_now(struct gpu_monitor *g)
{
    size_t i;
    json_t *gpu;
    first_wait(g);
    if (!g->looked_ns)
        return json_pack("{s:[]}", "gpus");
    json_t *is = probe_gpus(&g->look);
    json_array_foreach(json_object_get(is, "gpus"), i, gpu)
    {
        if (is_silent(g) && !json_object_get(gpu, "unhealthy"))
            (void)json_object_set_new(gpu, "unhealthy", json_string(silence));
    }
    return is;
}

bool gpu_monitor_changed(struct gpu_monitor *g)
{
    (void)pthread_mutex_lock(&g->lock);
    CLEANUP(json) json_t *is = probe_now(g);
    bool changed = !g->said || !json_equal(is, g->said);
    (void)pthread_mutex_unlock(&g->lock);
    return changed;
}

void gpu_monitor_add_inventory(struct gpu_monitor *g, json_t *machine)
{
    (void)pthread_mutex_lock(&g->lock);
    json_decref(g->said);
    g->said = probe_now(g);
    (void)json_object_update(machine, g->said);
    (void)pthread_mutex_unlock(&g->lock);
}

/* ---- lifetime --------------------------------------------------------------------------------------------------- */

struct gpu_monitor *gpu_monitor_new(struct agent *a)
{
    struct gpu_monitor *g = mem_zalloc(sizeof *g);
    g->agent = a;
    g->nvml = nvml_new(a->options->nvml);
    g->began_ns = steady_ns();
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&g->answered, &attr);
    (void)pthread_condattr_destroy(&attr);
    (void)pthread_mutex_init(&g->lock, NULL);
    g->worker = worker_new(a->loop);
    g->timer = loop_timer_new(a->loop, on_look_due, g);
    on_look_due(g);
    return g;
}

/* Stops the worker. False: the driver call does not return; the thread is abandoned together with the memory that it
 * uses. */
static bool worker_ends(struct gpu_monitor *g)
{
    int64_t until_ns = steady_ns() + END_NS;
    (void)pthread_mutex_lock(&g->lock);
    while (g->asking && steady_ns() < until_ns)
        wait_until(g, until_ns);
    g->left = g->asking;
    bool ends = !g->left;
    (void)pthread_mutex_unlock(&g->lock);
    if (ends)
        worker_free(g->worker);
    else
        worker_detach(g->worker);
    return ends;
}

void gpu_monitor_free(struct gpu_monitor *g)
{
    if (!g)
        return;
    loop_source_free(g->timer);
    if (!worker_ends(g))
        return;
    nvml_free(g->nvml);
    nvml_snapshot_done(&g->look);
    vec_done(&g->uses);
    json_decref(g->said);
    (void)pthread_cond_destroy(&g->answered);
    (void)pthread_mutex_destroy(&g->lock);
    mem_free(g);
}
