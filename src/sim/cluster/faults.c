/* faults.c - the faults, by name: crashes, disks, clocks, machines, links, and forged reports. */
#include <errno.h>
#include <inttypes.h>

#include "base/str.h"
#include "sim/cluster/world.h"

#define SETTLES_NS (2 * MINUTE) /* after the store works again */

struct faults {
    bool failing;
    int64_t failed_ns; /* when the store last rejected a write */
    int64_t slow_ns;   /* until when every write is slow */
};

static void trouble(struct sim_world *w, void *arg);

struct faults *faults_new(struct sim_world *w)
{
    struct faults *f = mem_zalloc(sizeof *f);
    f->failed_ns = -SETTLES_NS;
    world_schedule(w, random_range(&w->faults_rng, 10 * SECOND, MINUTE), trouble, NULL, NULL);
    return f;
}

void faults_free(struct faults *f)
{
    mem_free(f);
}

bool faults_store_fails(const struct sim_world *w)
{
    return w->faults->failing || w->now_ns - w->faults->failed_ns < SETTLES_NS || faults_store_slow(w);
}

bool faults_store_slow(const struct sim_world *w)
{
    return w->faults && w->now_ns < w->faults->slow_ns;
}

bool faults_allow(const struct sim_world *w, enum sim_fault_kind fault)
{
    return !w->calm && (w->allowed >> fault & 1);
}

/* ---- daemon ----------------------------------------------------------------------------------------------------- */

static void start(struct sim_world *w, void *arg)
{
    struct berth_err err;
    (void)arg;
    if (w->daemon.control)
        return;
    world_trace(w, "the daemon starts");
    if (daemon_start(w, &err) < 0) {
        world_breach(w, 7, "the daemon does not start again: %s", err.text);
        return;
    }
    verify_recovered(w);
}

static void crash(struct sim_world *w, bool orderly, int64_t down_ns)
{
    if (!w->daemon.control)
        return;
    world_trace(w, "the daemon %s, for %" PRId64 " s", orderly ? "is stopped" : "is killed", down_ns / SECOND);
    daemon_crash(w, orderly);
    w->faults->failing = false; /* the copy is on a working disk */
    world_schedule(w, down_ns, start, NULL, NULL);
}

static int64_t moment_ns(struct random_stream *rng)
{
    return random_per_mille(rng, 800) ? random_range(rng, MILLISECOND, 5 * SECOND) : random_range(rng, SECOND, MINUTE);
}

static void daemon_kill(struct sim_world *w)
{
    crash(w, false, moment_ns(&w->faults_rng));
}

static void daemon_stop(struct sim_world *w)
{
    crash(w, true, moment_ns(&w->faults_rng));
}

static void daemon_down(struct sim_world *w)
{
    int64_t down_ns = random_range(&w->faults_rng, 2 * MINUTE, 10 * MINUTE);
    crash(w, random_per_mille(&w->faults_rng, 500), down_ns);
}

/* ---- store ------------------------------------------------------------------------------------------------------ */

static void store_heals(struct sim_world *w, void *arg)
{
    (void)arg;
    if (!w->faults->failing)
        return;
    world_trace(w, "the store writes again");
    w->faults->failing = false;
    w->faults->failed_ns = w->now_ns;
    if (w->daemon.store)
        store_memory_fail(w->daemon.store, EIO, 0);
}

static void store_fails(struct sim_world *w)
{
    struct random_stream *rng = &w->faults_rng;
    int code = random_per_mille(rng, 500) ? ENOSPC : EIO;
    bool whole = random_per_mille(rng, 400);
    if (!w->daemon.control)
        return;
    world_trace(w, "the store fails with %s", code == EIO ? "EIO" : "ENOSPC");
    w->counts.store_failures++;
    w->faults->failing = true;
    w->faults->failed_ns = w->now_ns;
    store_memory_fail(w->daemon.store, code, whole ? SIZE_MAX : (size_t)random_range(rng, 1, 20));
    world_schedule(w, random_range(rng, 10 * MILLISECOND, 90 * SECOND), store_heals, NULL, NULL);
}

static void disk_slows(struct sim_world *w)
{
    w->faults->slow_ns = w->now_ns + random_range(&w->faults_rng, 10 * SECOND, 4 * MINUTE);
    w->faults->failed_ns = w->faults->slow_ns;
    world_trace(w, "every write takes seconds, for %" PRId64 " s", (w->faults->slow_ns - w->now_ns) / SECOND);
}

/* ---- clocks ----------------------------------------------------------------------------------------------------- */

static void clock_jumps(struct sim_world *w)
{
    struct random_stream *rng = &w->faults_rng;
    int64_t by_ns = random_per_mille(rng, 100)   ? random_range(rng, -30 * HOUR, 30 * HOUR)
                    : random_per_mille(rng, 500) ? random_range(rng, -HOUR, HOUR)
                                                 : random_range(rng, -5 * SECOND, 5 * SECOND);
    if (by_ns % 3 == 0 && (by_ns > HOUR || by_ns < -HOUR))
        by_ns *= 24; /* turns some jumps by hours into days and weeks */
    w->wall_ns += by_ns;
    w->jumped_ns += by_ns < 0 ? -by_ns : by_ns;
    world_trace(w, "the wall clock jumps by %" PRId64 " s", by_ns / SECOND);
}

/* ---- agents and their links ------------------------------------------------------------------------------------- */

/* Returns a random agent. Agents without a machine are still in the list. */
static size_t one(struct sim_world *w)
{
    size_t which = 0;
    for (unsigned tries = 0; tries < 16; tries++) {
        which = random_below(&w->faults_rng, agents_len(w));
        if (agents_has_machine(w, which))
            break;
    }
    return which;
}

static int64_t while_ns(struct random_stream *rng)
{
    return random_per_mille(rng, 500) ? random_range(rng, SECOND, MINUTE) : random_range(rng, MINUTE, 12 * MINUTE);
}

static void agent_kill(struct sim_world *w)
{
    agents_kill(w, one(w));
}

static void agent_pause(struct sim_world *w)
{
    int64_t for_ns = while_ns(&w->faults_rng);
    agents_pause(w, one(w), for_ns);
}

static void reboot(struct sim_world *w)
{
    agents_reboot(w, one(w));
}

static void partition(struct sim_world *w)
{
    int64_t for_ns = while_ns(&w->faults_rng);
    agents_cut(w, one(w), for_ns, CUT_BOTH);
}

static void one_way(struct sim_world *w)
{
    bool mute = random_per_mille(&w->faults_rng, 500);
    int64_t for_ns = while_ns(&w->faults_rng);
    agents_cut(w, one(w), for_ns, mute ? CUT_TO_DAEMON : CUT_FROM_DAEMON);
}

static void flap(struct sim_world *w)
{
    int64_t for_ns = while_ns(&w->faults_rng);
    agents_flap(w, one(w), for_ns);
}

/* Cuts off more than a third of the nodes, as a failed switch does. */
static void mass(struct sim_world *w)
{
    struct random_stream *rng = &w->faults_rng;
    size_t every = 1 + random_below(rng, 2);
    for (size_t i = random_below(rng, every); i < agents_len(w); i += every)
        agents_cut(w, i, random_range(rng, 20 * SECOND, 15 * MINUTE), CUT_BOTH);
}

static void twin(struct sim_world *w)
{
    agents_duplicate(w, one(w));
}

static void impostor(struct sim_world *w)
{
    agents_forge(w, one(w));
}

static void lie(struct sim_world *w)
{
    agents_report_falsely(w, one(w));
}

/* ---- table of faults -------------------------------------------------------------------------------------------- */

static const struct {
    struct sim_fault fault;
    void (*run)(struct sim_world *w); /* NULL: a fault of messages (network.c) */
    unsigned weight;
    bool agent; /* needs an agent */
} rows[SIM_FAULTS] = {
    [FAULT_DAEMON_KILL] = {{"daemon-kill", "the daemon is killed at any point, and is back within a minute"},
                           daemon_kill,                                                                                                                                                           10},
    [FAULT_DAEMON_STOP] = {{"daemon-stop", "the daemon is stopped in good order, and is back within a minute"},
                           daemon_stop,                                                                                                                                                           3},
    [FAULT_DAEMON_DOWN] = {{"daemon-down", "the daemon is gone for two to ten minutes"},                           daemon_down,                                                                   3},
    [FAULT_STORE] = {{"store", "the store refuses to write: no space, or I/O errors"},                       store_fails,                                                                   10},
    [FAULT_SLOW_DISK] = {{"slow-disk", "every write takes seconds"},                                             disk_slows,                                                                    4},
    [FAULT_CLOCK] = {{"clock", "the wall clock jumps, by seconds, hours or weeks, back too"},                clock_jumps,                                                                   8},
    [FAULT_AGENT_KILL] = {{"agent-kill", "an agent is killed, also between the mark and the start of something"},
                           agent_kill,                                                                                                                                                            12,
                           true},
    [FAULT_AGENT_PAUSE] = {{"agent-pause", "an agent's process stands still, then goes on with old timers"},
                           agent_pause,                                                                                    8,
                           true},
    [FAULT_REBOOT] = {{"reboot", "a machine starts anew: all processes are gone, its clock begins at 0"},
                           reboot,                                                                                                                                                                6,
                           true},
    [FAULT_PARTITION] = {{"partition", "nothing gets through between an agent and the daemon"},                                                                                     partition,                                                                                                                                                                  12,true},
    [FAULT_ONE_WAY] = {{"one-way", "an agent is not heard, or hears nothing"},one_way,8,true},
    [FAULT_FLAP] = {{"flap", "a link comes and goes every few seconds"},                                 flap,                                                                                                               5, true},
    [FAULT_MASS] = {{"mass", "half of the agents or all of them are cut off at once"},                                                                                      mass,                                                                                                                 3,true},
    [FAULT_TWIN] = {{"twin", "a second machine with a copy of a node's disk speaks for the node"},                                                                                  twin,                                                                                                                                                               4,true},
    [FAULT_IMPOSTOR] = {{"impostor", "old agents, old words and other nodes' names in reports"},                                                                                     impostor,                                              6,true},
    [FAULT_LIE] = {{"lie", "an agent tells of instances that are not its own, or never were"}, lie,3,true},
    [FAULT_LOST] = {{"lost", "messages of agents get lost"},                NULL, 0},
    [FAULT_LATE] = {{"late", "messages of agents are late, and overtake each other"},                                                                                      NULL,                                                                                          0},
    [FAULT_REPEATED] = {{"repeated", "reports come again, up to 20 minutes later"},                                                                                  NULL,                                                                                                                                                               0                                                                                                 },
};

const struct sim_fault *sim_fault_at(size_t i)
{
    return i < SIM_FAULTS ? &rows[i].fault : NULL;
}

static int fault_find(const char *name, size_t len)
{
    for (int i = 0; i < SIM_FAULTS; i++)
        if (strlen(rows[i].fault.name) == len && memcmp(rows[i].fault.name, name, len) == 0)
            return i;
    return -1;
}

int sim_faults_parse(const char *list, uint64_t *ret, struct berth_err *err)
{
    const uint64_t all = (UINT64_C(1) << SIM_FAULTS) - 1;
    uint64_t bits = *list == '-' ? all : 0;
    for (const char *at = list; *at; at += *at == ',') {
        bool less = *at == '-';
        at += less;
        size_t len = strcspn(at, ",");
        int found = fault_find(at, len);
        uint64_t bit = found >= 0 ? UINT64_C(1) << found : len == 3 && memcmp(at, "all", 3) == 0 ? all : 0;
        if (!bit && (len != 4 || memcmp(at, "none", 4) != 0))
            return err_set(err, EINVAL, "unknown fault \"%.*s\"; see `berth sim cluster --faults help`",
                           (int)(len < 40 ? len : 40), at);
        bits = less ? bits & ~bit : bits | bit;
        at += len;
    }
    *ret = bits;
    return 0;
}

static void trouble(struct sim_world *w, void *arg)
{
    struct random_stream *rng = &w->faults_rng;
    unsigned rate = w->options->rates.faults ? w->options->rates.faults : 100, total = 0;
    (void)arg;
    if (w->calm)
        return;
    world_schedule(w, random_range(rng, SECOND, 80 * SECOND) * 100 / rate, trouble, NULL, NULL);
    for (unsigned i = 0; i < SIM_FAULTS; i++)
        total += faults_allow(w, i) ? rows[i].weight : 0;
    unsigned draw = (unsigned)random_below(rng, total);
    for (unsigned i = 0; i < SIM_FAULTS && total; i++) {
        unsigned weight = faults_allow(w, i) ? rows[i].weight : 0;
        if (draw < weight) {
            if (!rows[i].agent || agents_len(w)) {
                w->counts.faults[i]++;
                rows[i].run(w);
            }
            return;
        }
        draw -= weight;
    }
}

void faults_end(struct sim_world *w)
{
    w->faults->slow_ns = 0;
    store_heals(w, NULL);
    start(w, NULL);
}
