#include "control/node/task_config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"
#include "control/watch/derived_parts.h"

/* ---- jobs of a gang --------------------------------------------------------------------------------------------- */

enum { ROLES_MAX = 64 };

/* Ordered by ID. */
struct task_roles {
    const struct object *at[ROLES_MAX];
    size_t len;
    uint64_t first; /* number of the first job */
};

static const struct object *job_of(const struct state *s, uint64_t number, const char *gang)
{
    char id[24];
    const struct object *job;

    (void)snprintf(id, sizeof id, "%" PRIu64, number);
    job = number ? state_find(s, KIND_JOB, id) : NULL;
    return job && strcmp(job->work->gang, gang) == 0 ? job : NULL;
}

/* Finds the jobs of the gang; at least the job itself. */
static void roles_find(const struct state *s, const struct object *job, struct task_roles *ret)
{
    const char *gang = job->work->gang;
    const struct object *one = job;

    *ret = (struct task_roles){.at = {job}, .len = 1, .first = strtoull(job->id, NULL, 10)};
    if (!*gang)
        return;
    for (size_t back = 1; back < ROLES_MAX && job_of(s, ret->first - 1, gang); back++)
        ret->first--;
    for (ret->len = 0; ret->len < ROLES_MAX && (one = job_of(s, ret->first + ret->len, gang)); ret->len++)
        ret->at[ret->len] = one;
}

/* ---- tasks of a gang -------------------------------------------------------------------------------------------- */

struct task_peer {
    uint32_t rank;
    uint64_t number;
    const char *node;
};
struct peers {
    struct task_peer *at;
    size_t len, cap;
};

static int peer_compare(const void *a_, const void *b_)
{
    const struct task_peer *a = a_, *b = b_;

    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->number > b->number ? -1 : a->number < b->number; /* newest first */
}

static void peers_add(const struct object *job, uint32_t before, struct peers *to)
{
    for (size_t i = 0; i < job->work->instances_len; i++) {
        const struct instance_view *one = job->work->instances[i]->instance;
        struct task_peer peer = {before + one->ordinal, one->number, one->node};
        vec_push(to, peer);
    }
}

/* Finds one task for each rank that has or had an instance, in order; of several instances the newest. */
static void peers_find(const struct task_roles *roles, struct peers *ret)
{
    uint32_t before = 0;
    size_t kept = 0;

    for (size_t i = 0; i < roles->len; i++) {
        peers_add(roles->at[i], before, ret);
        before += roles->at[i]->work->replicas;
    }
    if (ret->len)
        qsort(ret->at, ret->len, sizeof *ret->at, peer_compare);
    for (size_t i = 0; i < ret->len; i++)
        if (kept == 0 || ret->at[kept - 1].rank != ret->at[i].rank)
            ret->at[kept++] = ret->at[i];
    ret->len = kept;
}

/* ---- nodes of a gang -------------------------------------------------------------------------------------------- */

struct task_host {
    const char *node;
    uint32_t rank, slots; /* lowest rank on the node; number of tasks */
};
struct hosts {
    struct task_host *at;
    size_t len, cap;
};

static int by_node(const void *a, const void *b)
{
    const struct task_host *x = a, *y = b;
    int order = strcmp(x->node, y->node);

    return order ? order : x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int by_rank(const void *a, const void *b)
{
    const struct task_host *x = a, *y = b;

    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Ordered by the lowest rank on each node. */
static void hosts_find(const struct peers *peers, struct hosts *ret)
{
    size_t kept = 0;

    for (size_t i = 0; i < peers->len; i++) {
        struct task_host host = {peers->at[i].node, peers->at[i].rank, 1};
        vec_push(ret, host);
    }
    if (ret->len == 0)
        return;
    qsort(ret->at, ret->len, sizeof *ret->at, by_node);
    for (size_t i = 0; i < ret->len; i++) {
        if (kept && strcmp(ret->at[kept - 1].node, ret->at[i].node) == 0)
            ret->at[kept - 1].slots++;
        else
            ret->at[kept++] = ret->at[i];
    }
    ret->len = kept;
    qsort(ret->at, ret->len, sizeof *ret->at, by_rank);
}

/* ---- output ----------------------------------------------------------------------------------------------------- */

static bool is_starting(const struct instance_view *i)
{
    return i->state == BERTH_ASSIGNED || i->state == BERTH_STARTING;
}

static void array_write(struct json_out *o, const struct job_array *a, uint32_t ordinal)
{
    uint64_t last = a->from + (uint64_t)a->step * (a->count - 1);

    json_out_number(o, "index", a->from + (uint64_t)a->step * ordinal);
    json_out_number(o, "first", a->from);
    json_out_number(o, "last", last);
    json_out_number(o, "step", a->step);
}

static void hosts_write(struct json_out *o, const struct state *s, const struct hosts *hosts)
{
    struct arena arena;

    arena_init(&arena);
    json_out_open(o, "hosts", '[');
    for (size_t i = 0; i < hosts->len; i++) {
        json_out_open(o, NULL, '{');
        json_out_text(o, "node", hosts->at[i].node);
        /* All tasks are on one node: it reaches itself, whatever address other nodes use. */
        json_out_text(o, "address", hosts->len == 1 ? "127.0.0.1" : node_place(s, hosts->at[i].node, &arena).address);
        json_out_number(o, "slots", hosts->at[i].slots);
        json_out_close(o, '}');
    }
    json_out_close(o, ']');
    arena_done(&arena);
}

/* Writes where the peers are, and the task's index among those on its node. */
static void places_write(struct json_out *o, const struct state *s, const struct peers *peers, const char *node,
                         uint32_t rank)
{
    struct hosts hosts = {0};
    uint32_t before = 0, at = 0;

    for (size_t i = 0; i < peers->len; i++)
        before += peers->at[i].rank < rank && strcmp(peers->at[i].node, node) == 0;
    hosts_find(peers, &hosts);
    while (at + 1 < hosts.len && strcmp(hosts.at[at].node, node) != 0)
        at++;
    json_out_number(o, "local_rank", before);
    json_out_number(o, "node_rank", at);
    hosts_write(o, s, &hosts);
    vec_done(&hosts);
}

/* For a gang that may be smaller than desired: renumbers the existing tasks without gaps. */
static void ranks_renumber(struct peers *peers, uint32_t *rank, uint32_t *size)
{
    uint32_t own = *rank;

    for (size_t i = 0; i < peers->len; i++) {
        if (peers->at[i].rank == own)
            *rank = (uint32_t)i;
        peers->at[i].rank = (uint32_t)i;
    }
    *size = (uint32_t)peers->len;
}

static void gang_write(struct json_out *o, const struct state *s, const struct instance_view *i,
                       const struct object *job, const struct work_doc *work)
{
    struct task_roles roles;
    struct peers peers = {0};
    uint32_t size = 0, rank = i->ordinal;
    bool gang = *job->work->gang;

    roles_find(s, job, &roles);
    for (size_t r = 0; r < roles.len; r++) {
        if (strtoull(roles.at[r]->id, NULL, 10) < strtoull(job->id, NULL, 10))
            rank += roles.at[r]->work->replicas;
        size += roles.at[r]->work->replicas;
    }
    if (gang && is_starting(i)) {
        peers_find(&roles, &peers);
        if (roles.len == 1 && work->workload.gang_min && work->workload.gang_min < size)
            ranks_renumber(&peers, &rank, &size);
    }
    json_out_number(o, "rank", rank);
    json_out_number(o, "size", size);
    if (peers.len) {
        json_out_number(o, "port", TASK_PORT_BASE + roles.first % TASK_PORTS);
        places_write(o, s, &peers, i->node, rank);
    }
    vec_done(&peers);
}

void task_config_write(struct json_out *o, const struct state *s, const struct object *instance,
                       const struct work_doc *work)
{
    const struct instance_view *i = instance->instance;
    const struct object *job = state_find(s, KIND_JOB, i->workload);
    bool array = work->job.array.count > 0;

    if (!job || (!array && job->work->replicas <= 1 && !*job->work->gang))
        return;
    json_out_open(o, "task", '{');
    out_text_if_set(o, "role", work->job.role);
    if (array)
        array_write(o, &work->job.array, i->ordinal);
    else
        gang_write(o, s, i, job, work);
    json_out_close(o, '}');
}

uint64_t task_config_mark(const struct state *s, const struct object *instance)
{
    const struct object *job = state_find(s, KIND_JOB, instance->instance->workload);
    uint64_t mark = 0;
    struct task_roles roles;

    if (!job || !*job->work->gang)
        return 0;
    roles_find(s, job, &roles);
    for (size_t i = 0; i < roles.len; i++) {
        const struct work_view *w = roles.at[i]->work;
        mark = hash_pair(mark, w->replicas);
        if (!is_starting(instance->instance))
            continue;
        mark = hash_pair(mark, w->instances_len);
        mark = hash_pair(mark, w->instances_len ? w->instances[w->instances_len - 1]->instance->number : 0);
    }
    return mark;
}
