#include "control/job/job_names.h"

#include <string.h>

#include "base/hash.h"
#include "base/str.h"

void job_names_done(struct job_names *n)
{
    for (size_t i = 0; i < n->rows.len; i++)
        vec_done(&n->rows.at[i].jobs);
    vec_done(&n->rows);
    vec_done(&n->spare);
    map_done(&n->map);
}

uint64_t job_name_key(const struct object *job)
{
    return JOB_NAME_KEY | hash_pair(hash_bytes(job->owner, strlen(job->owner), 1),
                                    hash_bytes(job->work->name, strlen(job->work->name), 2));
}

static bool same_key(const void *ctx, uint32_t at, const void *key)
{
    return ((const struct job_names *)ctx)->rows.at[at].key == *(const uint64_t *)key;
}

static uint32_t row_find(const struct job_names *n, uint64_t key)
{
    return map_find(&n->map, hash_u64(key), same_key, n, &key);
}

static struct job_name *row_make(struct job_names *n, uint64_t key)
{
    uint32_t at;
    if (n->spare.len) {
        at = n->spare.at[--n->spare.len];
    } else {
        at = (uint32_t)n->rows.len;
        vec_push(&n->rows, (struct job_name){0});
    }
    n->rows.at[at] = (struct job_name){.key = key};
    map_add(&n->map, hash_u64(key), at);
    return &n->rows.at[at];
}

static void row_drop(struct job_names *n, uint32_t at)
{
    struct job_name *row = &n->rows.at[at];
    map_drop(&n->map, hash_u64(row->key), at);
    vec_done(&row->jobs);
    *row = (struct job_name){0};
    vec_push(&n->spare, at);
}

void job_names_add(struct job_names *n, const struct object *job)
{
    uint64_t key = job_name_key(job);
    int64_t number = 0;
    if (!*job->work->name || !str_parse_i64(job->id, &number))
        return;
    uint32_t found = row_find(n, key);
    struct job_name *row = found == MAP_NONE ? row_make(n, key) : &n->rows.at[found];
    size_t low = row->head, high = row->jobs.len;
    if (high > low && row->jobs.at[high - 1] < (uint64_t)number) /* most jobs are new */
        low = high;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (row->jobs.at[mid] < (uint64_t)number)
            low = mid + 1;
        else
            high = mid;
    }
    if (low < row->jobs.len && row->jobs.at[low] == (uint64_t)number)
        return;
    vec_push(&row->jobs, (uint64_t)number);
    memmove(row->jobs.at + low + 1, row->jobs.at + low, (row->jobs.len - 1 - low) * sizeof *row->jobs.at);
    row->jobs.at[low] = (uint64_t)number;
}

static const struct object *open_job(const struct state *s, uint64_t number)
{
    char id[24];
    const struct object *job = state_find(s, KIND_JOB, str_u64(number, id));
    return job && !job->work->finished_ns ? job : NULL;
}

const struct object *job_names_oldest(struct job_names *n, const struct state *s, uint64_t key)
{
    uint32_t at = row_find(n, key);
    if (at == MAP_NONE)
        return NULL;
    struct job_name *row = &n->rows.at[at];
    while (row->head < row->jobs.len && !open_job(s, row->jobs.at[row->head]))
        row->head++;
    for (size_t i = row->head; i < row->jobs.len; i++) { /* a renamed job is still in the row of its old name */
        const struct object *job = open_job(s, row->jobs.at[i]);
        if (job && job_name_key(job) == key)
            return job;
    }
    if (row->head == row->jobs.len)
        row_drop(n, at);
    return NULL;
}
