/* probe_use.c - usage and conditions of the machine. */
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/timex.h>

#include "base/mem.h"
#include "base/vec.h"
#include "machine/probe/plugin.h"
#include "machine/probe/probe.h"
#include "machine/probe/probe_parts.h"

#define SECOND_NS INT64_C(1000000000)
#define PLUGINS_EVERY_NS (60 * SECOND_NS)
enum { CPU_STEP_MILLI = 50, SIZE_STEP = 1000000, RATE_STEP = 1000 };

enum pressure { PRESSURE_DISK, PRESSURE_MEMORY, PRESSURE_PIDS, PRESSURES };

/* A condition begins below `begin` percent free and ends above `end` percent free. */
static const struct {
    const char *type, *text;
    int begin, end;
} pressures[PRESSURES] = {
    [PRESSURE_DISK] = {"DiskPressure",   "less than 5 % of the file system for storage is free", 5,  7 },
    [PRESSURE_MEMORY] = {"MemoryPressure", "less than 5 % of memory is available",                 5,  7 },
    [PRESSURE_PIDS] = {"PidPressure",    "less than 10 % of PIDs are free",                      10, 15},
};

struct reported_amount {
    char *name;
    int64_t amount;
};

struct probe_use {
    char *root, *plugins, *disk;
    VEC(struct reported_amount) shown;
    bool pressed[PRESSURES];
    bool looked; /* the fields below are from an earlier call */
    int64_t at_ns, plugins_ns;
    uint64_t busy, ticks;
    uint64_t received, sent;
    json_t *said, *troubles; /* last output and conditions of the plugins */
    /* state of the current call */
    json_t *usage;
    bool devices_only;
    uint64_t sum_received, sum_sent;
};

struct probe_use *probe_use_new(const struct probe_config *config)
{
    struct probe_use *p = mem_zalloc(sizeof *p);
    p->root = mem_strdup(config->root ? config->root : "");
    p->plugins = config->plugins ? mem_strdup(config->plugins) : NULL;
    p->disk = config->disk ? mem_strdup(config->disk) : NULL;
    return p;
}

void probe_use_free(struct probe_use *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->shown.len; i++)
        mem_free(p->shown.at[i].name);
    vec_done(&p->shown);
    json_decref(p->said);
    json_decref(p->troubles);
    mem_free(p->root);
    mem_free(p->plugins);
    mem_free(p->disk);
    mem_free(p);
}

static void show(struct probe_use *p, const char *name, int64_t raw, int64_t step_min)
{
    size_t i = 0;
    while (i < p->shown.len && strcmp(p->shown.at[i].name, name) != 0)
        i++;
    if (i == p->shown.len) {
        struct reported_amount fresh = {.name = mem_strdup(name), .amount = -1};
        vec_push(&p->shown, fresh);
    }
    p->shown.at[i].amount = probe_round(p->shown.at[i].amount, raw, step_min);
    json_object_set_new(p->usage, name, probe_amount(name, p->shown.at[i].amount));
}

static void pressure_update(struct probe_use *p, enum pressure what, int64_t free, int64_t total)
{
    int limit = p->pressed[what] ? pressures[what].end : pressures[what].begin;
    p->pressed[what] = total > 0 && free < total / 100 * limit;
}

/* ---- resources -------------------------------------------------------------------------------------------------- */

/* Reads "cpu  user nice system idle iowait irq softirq steal ..."; idle, iowait and steal are not use. Compares ticks
 * of all CPUs, so no clock is needed. */
static void cpu_read(struct probe_use *p)
{
    CLEANUP(str) struct str stat = {0};
    uint64_t all = 0, busy = 0;
    int64_t cpus = 0;
    if (!probe_file(p->root, &stat, "proc/stat") || strncmp(stat.at, "cpu ", 4) != 0)
        return;
    char *at = stat.at + 4;
    for (int i = 0; i < 8; i++) {
        uint64_t ticks = strtoull(at, &at, 10);
        all += ticks;
        busy += i == 3 || i == 4 || i == 7 ? 0 : ticks;
    }
    for (const char *line = strstr(stat.at, "\ncpu"); line; line = strstr(line + 1, "\ncpu"))
        cpus++;
    if (p->looked && all > p->ticks && busy >= p->busy)
        show(p, "cpu", (int64_t)((busy - p->busy) * (uint64_t)cpus * 1000 / (all - p->ticks)), CPU_STEP_MILLI);
    p->busy = busy;
    p->ticks = all;
}

static void memory_read(struct probe_use *p)
{
    CLEANUP(str) struct str meminfo = {0};
    if (!probe_file(p->root, &meminfo, "proc/meminfo"))
        return;
    int64_t total = probe_meminfo(str_text(&meminfo), "MemTotal");
    int64_t available = probe_meminfo(str_text(&meminfo), "MemAvailable");
    int64_t pools = probe_meminfo(str_text(&meminfo), "Hugetlb"); /* counted separately */
    total -= pools > 0 ? pools : 0;
    if (total <= 0 || available < 0)
        return;
    show(p, "memory", total > available ? total - available : 0, SIZE_STEP);
    pressure_update(p, PRESSURE_MEMORY, available, total);
}

static void pool_read(void *ctx, const char *name)
{
    struct probe_use *p = ctx;
    char resource[PROBE_TEXT_MAX];
    int64_t page = probe_page_bytes(name);
    int64_t pages = page ? probe_number(p->root, 0, "sys/kernel/mm/hugepages/%s/nr_hugepages", name) : 0;
    int64_t unused = page ? probe_number(p->root, 0, "sys/kernel/mm/hugepages/%s/free_hugepages", name) : 0;
    if (pages > 0 && pages <= INT64_MAX / page) /* exact, because it changes only when pages are mapped */
        json_object_set_new(p->usage, probe_pages_name(page, resource),
                            probe_amount(resource, (pages - unused) * page));
}

static void storage_read(struct probe_use *p)
{
    struct statvfs fs;
    if (!p->disk || statvfs(p->disk, &fs) < 0)
        return;
    uint64_t used = ((uint64_t)fs.f_blocks - (uint64_t)fs.f_bfree);
    show(p, "storage", (int64_t)(used * (uint64_t)fs.f_frsize), SIZE_STEP);
    pressure_update(p, PRESSURE_DISK, (int64_t)fs.f_bavail, (int64_t)(used + fs.f_bavail));
}

static void network_read(void *ctx, const char *name)
{
    struct probe_use *p = ctx;
    if (strcmp(name, "lo") == 0 || probe_exists(p->root, "sys/class/net/%s/device", name) != p->devices_only)
        return;
    int64_t received = probe_number(p->root, 0, "sys/class/net/%s/statistics/rx_bytes", name);
    int64_t sent = probe_number(p->root, 0, "sys/class/net/%s/statistics/tx_bytes", name);
    p->sum_received += received > 0 ? (uint64_t)received : 0;
    p->sum_sent += sent > 0 ? (uint64_t)sent : 0;
}

static int64_t rate(uint64_t now, uint64_t then, int64_t passed_ns)
{
    return now > then ? (int64_t)((double)(now - then) * (double)SECOND_NS / (double)passed_ns) : 0;
}

/* Counts physical network devices; a machine without any (in its own network namespace) has only virtual ones, which
 * are counted instead. */
static void networks_read(struct probe_use *p, int64_t passed_ns)
{
    for (int round = 0; round < 2 && p->sum_received + p->sum_sent == 0; round++) {
        p->devices_only = round == 0;
        probe_each(p->root, "sys/class/net", network_read, p);
    }
    if (p->looked && passed_ns > 0) {
        show(p, "network-in", rate(p->sum_received, p->received, passed_ns), RATE_STEP);
        show(p, "network-out", rate(p->sum_sent, p->sent, passed_ns), RATE_STEP);
    }
    p->received = p->sum_received;
    p->sent = p->sum_sent;
    p->sum_received = p->sum_sent = 0;
}

/* Reads "0.92 1.86 0.91 2/93 19850": 93 threads, each with its own number. */
static void pids_read(struct probe_use *p)
{
    char line[PROBE_TEXT_MAX];
    const char *slash = strchr(probe_line(p->root, line, "proc/loadavg"), '/');
    int64_t numbers = probe_number(p->root, 0, "proc/sys/kernel/pid_max");
    int64_t threads = probe_number(p->root, numbers, "proc/sys/kernel/threads-max");
    int64_t most = threads < numbers ? threads : numbers;
    if (slash)
        pressure_update(p, PRESSURE_PIDS, most - strtoll(slash + 1, NULL, 10), most);
}

static void plugins_read(struct probe_use *p, int64_t now_ns)
{
    if (!p->plugins)
        return;
    if (!p->said || now_ns - p->plugins_ns >= PLUGINS_EVERY_NS) {
        json_decref(p->said);
        json_decref(p->troubles);
        p->troubles = json_array();
        p->said = plugins_run(p->plugins, PLUGIN_TIMEOUT_NS, p->troubles);
        p->plugins_ns = now_ns;
    }
    json_object_update(p->usage, json_object_get(p->said, "use"));
}

static bool clock_is_off(const struct probe_use *p)
{
    struct timex t = {.modes = 0};
    int rc = *p->root ? TIME_OK : adjtimex(&t);
    return rc == TIME_ERROR || t.status & STA_UNSYNC;
}

/* ---- whole machine ---------------------------------------------------------------------------------------------- */

static void condition_add(json_t *conditions, const char *type, const char *text)
{
    json_array_append_new(conditions, json_pack("{s:s, s:s}", "type", type, "text", text));
}

json_t *probe_use_poll(struct probe_use *p, int64_t steady_ns)
{
    json_t *conditions = json_array(), *usage = json_object();
    p->usage = usage;
    cpu_read(p);
    memory_read(p);
    probe_each(p->root, "sys/kernel/mm/hugepages", pool_read, p);
    storage_read(p);
    networks_read(p, steady_ns - p->at_ns);
    pids_read(p);
    plugins_read(p, steady_ns);
    for (size_t i = 0; i < PRESSURES; i++)
        if (p->pressed[i])
            condition_add(conditions, pressures[i].type, pressures[i].text);
    if (clock_is_off(p))
        condition_add(conditions, "ClockUnsynchronised",
                      "the clock is not synchronized; run chrony or another NTP client");
    if (p->troubles)
        json_array_extend(conditions, p->troubles);
    p->at_ns = steady_ns;
    p->looked = true;
    p->usage = NULL;
    return json_pack("{s:o, s:o}", "usage", usage, "conditions", conditions);
}
