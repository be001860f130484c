/* faults.c - what goes wrong beside the network: crashes, disks, clocks, partitions, and two agents with one name. */
#include <errno.h>
#include <inttypes.h>

#include "sim/world.h"

#define SETTLES_NS (2 * MINUTE) /* after the store writes again */

struct faults {
    bool failing;
    int64_t failed_ns; /* when the store last refused */
};

static void trouble(struct world *w, void *arg);

struct faults *faults_new(struct world *w)
{
    struct faults *f = mem_zalloc(sizeof *f);
    f->failed_ns = -SETTLES_NS;
    world_later(w, chance_range(&w->faults_luck, 10 * SECOND, MINUTE), trouble, NULL, NULL);
    return f;
}

void faults_free(struct faults *f)
{
    mem_free(f);
}

bool faults_store_fails(const struct world *w)
{
    return w->faults->failing || w->now_ns - w->faults->failed_ns < SETTLES_NS;
}

/* ---- crashes ------------------------------------------------------------------------------------------------------- */

static void start(struct world *w, void *arg)
{
    struct berth_err err;
    (void)arg;
    if (w->daemon.control)
        return;
    world_says(w, "the daemon starts");
    if (daemon_start(w, &err) < 0) {
        world_breach(w, 7, "the daemon does not start again: %s", err.text);
        return;
    }
    judge_recovered(w);
}

static void crash(struct world *w)
{
    struct chance *luck = &w->faults_luck;
    bool orderly = chance_in(luck, 200);
    if (!w->daemon.control)
        return;
    world_says(w, "the daemon %s", orderly ? "is restarted" : "crashes");
    daemon_crash(w, orderly);
    w->faults->failing = false; /* the copy is on a disk that works */
    world_later(w,
                chance_in(luck, 800) ? chance_range(luck, MILLISECOND, 5 * SECOND) : chance_range(luck, SECOND, MINUTE),
                start, NULL, NULL);
}

/* ---- the store ----------------------------------------------------------------------------------------------------- */

static void store_heals(struct world *w, void *arg)
{
    (void)arg;
    if (!w->faults->failing)
        return;
    world_says(w, "the store writes again");
    w->faults->failing = false;
    w->faults->failed_ns = w->now_ns;
    if (w->daemon.store)
        store_memory_fail(w->daemon.store, EIO, 0);
}

static void store_fails(struct world *w)
{
    struct chance *luck = &w->faults_luck;
    int code = chance_in(luck, 500) ? ENOSPC : EIO;
    bool whole = chance_in(luck, 400);
    if (!w->daemon.control)
        return;
    world_says(w, "the store fails with %s", code == EIO ? "EIO" : "ENOSPC");
    w->counts.store_failures++;
    w->faults->failing = true;
    w->faults->failed_ns = w->now_ns;
    store_memory_fail(w->daemon.store, code, whole ? SIZE_MAX : (size_t)chance_range(luck, 1, 20));
    world_later(w, chance_range(luck, 10 * MILLISECOND, 90 * SECOND), store_heals, NULL, NULL);
}

/* ---- clocks -------------------------------------------------------------------------------------------------------- */

static void clock_jumps(struct world *w)
{
    struct chance *luck = &w->faults_luck;
    int64_t by_ns = chance_in(luck, 100)   ? chance_range(luck, -30 * HOUR, 30 * HOUR)
                    : chance_in(luck, 500) ? chance_range(luck, -HOUR, HOUR)
                                           : chance_range(luck, -5 * SECOND, 5 * SECOND);
    w->wall_ns += by_ns;
    w->jumped_ns += by_ns < 0 ? -by_ns : by_ns;
    world_says(w, "the wall clock jumps by %" PRId64 " s", by_ns / SECOND);
}

/* ---- all of them --------------------------------------------------------------------------------------------------- */

static void trouble(struct world *w, void *arg)
{
    struct chance *luck = &w->faults_luck;
    unsigned rate = w->options->rates.faults ? w->options->rates.faults : 100;
    size_t agents = agents_len(w), draw = chance_below(luck, 100);
    (void)arg;
    if (w->calm)
        return;
    world_later(w, chance_range(luck, SECOND, 80 * SECOND) * 100 / rate, trouble, NULL, NULL);
    if (draw < 14)
        crash(w);
    else if (draw < 26)
        store_fails(w);
    else if (draw < 36)
        clock_jumps(w);
    else if (draw < 64 && agents)
        agents_partition(w, chance_below(luck, agents),
                         chance_in(luck, 500) ? chance_range(luck, SECOND, MINUTE)
                                              : chance_range(luck, MINUTE, 8 * MINUTE),
                         chance_in(luck, 700));
    else if (draw < 67) /* half of them at once: a switch dies */
        for (size_t i = 0; i < agents; i += 2)
            agents_partition(w, i, chance_range(luck, 20 * SECOND, 5 * MINUTE), true);
    else if (draw < 85 && agents)
        agents_restart(w, chance_below(luck, agents));
    else if (agents)
        agents_impostor(w, chance_below(luck, agents));
}

void faults_end(struct world *w)
{
    store_heals(w, NULL);
    start(w, NULL);
}
