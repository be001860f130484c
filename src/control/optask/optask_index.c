#include "control/optask/optask_index.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

/* A name and its counts: a step, or an OpTask. */
struct opindex_entry {
    char *id; /* NULL: the entry is free */
    uint32_t task;
    bool active, failed, open; /* of a step */
    size_t steps;              /* of an OpTask */
    struct optask_counts counts;
};

struct opindex_table {
    struct map map;
    VEC(struct opindex_entry) at;
    VEC(uint32_t) unused;
};

struct opindex {
    struct opindex_table steps, tasks;
    VEC(const char *) open;
};

/* ---- tables ----------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const char *id)
{
    return hash_bytes(id, strlen(id), 0);
}

static bool same(const void *ctx, uint32_t at, const void *id)
{
    return strcmp(((const struct opindex_table *)ctx)->at.at[at].id, id) == 0;
}

static uint32_t find(const struct opindex_table *t, const char *id)
{
    return map_find(&t->map, hash_of(id), same, t, id);
}

static uint32_t find_or_add(struct opindex_table *t, const char *id)
{
    uint32_t at = find(t, id);
    if (at != MAP_NONE)
        return at;
    if (t->unused.len) {
        at = t->unused.at[--t->unused.len];
    } else {
        at = (uint32_t)t->at.len;
        vec_resize(&t->at, t->at.len + 1);
    }
    t->at.at[at] = (struct opindex_entry){.id = mem_strdup(id)};
    map_add(&t->map, hash_of(id), at);
    return at;
}

static void drop(struct opindex_table *t, uint32_t at)
{
    map_drop(&t->map, hash_of(t->at.at[at].id), at);
    mem_free(t->at.at[at].id);
    t->at.at[at] = (struct opindex_entry){0};
    vec_push(&t->unused, at);
}

static void table_done(struct opindex_table *t)
{
    for (size_t i = 0; i < t->at.len; i++)
        mem_free(t->at.at[i].id);
    vec_done(&t->at);
    vec_done(&t->unused);
    map_done(&t->map);
}

/* ---- new and free ----------------------------------------------------------------------------------------------- */

struct opindex *opindex_new(void)
{
    return mem_zalloc(sizeof(struct opindex));
}

void opindex_free(struct opindex *ix)
{
    if (!ix)
        return;
    vec_done(&ix->open);
    table_done(&ix->steps);
    table_done(&ix->tasks);
    mem_free(ix);
}

/* ---- changes ---------------------------------------------------------------------------------------------------- */

static size_t place_of(const struct opindex *ix, const char *id)
{
    size_t low = 0, high = ix->open.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(ix->open.at[middle], id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void open_set(struct opindex *ix, struct opindex_entry *step, bool open)
{
    size_t at = place_of(ix, step->id);
    if (open && !step->open) {
        vec_resize(&ix->open, ix->open.len + 1);
        memmove(ix->open.at + at + 1, ix->open.at + at, (ix->open.len - 1 - at) * sizeof *ix->open.at);
        ix->open.at[at] = step->id;
    } else if (!open && step->open) {
        assert(ix->open.at[at] == step->id);
        memmove(ix->open.at + at, ix->open.at + at + 1, (ix->open.len - 1 - at) * sizeof *ix->open.at);
        ix->open.len--;
    }
    step->open = open;
}

static void count_set(struct opindex *ix, struct opindex_entry *step, bool active, bool failed)
{
    struct optask_counts *counts = &ix->tasks.at.at[step->task].counts;
    counts->active = counts->active + active - step->active;
    counts->failed = counts->failed + failed - step->failed;
    step->active = active;
    step->failed = failed;
}

static void entry_removed(struct opindex *ix, uint32_t at)
{
    struct opindex_entry *step = &ix->steps.at.at[at];
    uint32_t task = step->task;
    count_set(ix, step, false, false);
    open_set(ix, step, false);
    if (--ix->tasks.at.at[task].steps == 0)
        drop(&ix->tasks, task);
    drop(&ix->steps, at);
}

void opindex_note(struct opindex *ix, const char *id, const struct opstep_view *v, bool orphan)
{
    uint32_t at = find(&ix->steps, id);
    if (!v) {
        if (at != MAP_NONE)
            entry_removed(ix, at);
        return;
    }
    if (at == MAP_NONE) {
        uint32_t task = find_or_add(&ix->tasks, v->optask);
        ix->tasks.at.at[task].steps++;
        at = find_or_add(&ix->steps, id);
        ix->steps.at.at[at].task = task;
    }
    struct opindex_entry *step = &ix->steps.at.at[at];
    bool over = v->state == OPSTEP_DONE || v->state == OPSTEP_UNDONE;
    bool active = opstep_active(v->state);
    count_set(ix, step, active, opstep_failed(v));
    open_set(ix, step, active || v->state == OPSTEP_PENDING || (over && v->drained) || orphan);
}

/* ---- queries ---------------------------------------------------------------------------------------------------- */

const char *const *opindex_open(const struct opindex *ix, size_t *ret_len)
{
    *ret_len = ix->open.len;
    return ix->open.at;
}

struct optask_counts opindex_counts(const struct opindex *ix, const char *optask)
{
    uint32_t at = find(&ix->tasks, optask);
    return at == MAP_NONE ? (struct optask_counts){0} : ix->tasks.at.at[at].counts;
}
