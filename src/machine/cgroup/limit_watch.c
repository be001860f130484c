/* limit_watch.c - counts consecutive samples above and below the limits. */
#include "machine/cgroup/limit_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/cgroup/limit_names.h"
#include "wire/text/quantity.h"

enum { ABOVE_LOOKS = 3, BELOW_LOOKS = 3, FAR_LOOKS = 5, ABOVE_PERCENT = 5, FAR_PERCENT = 20 };

/* Tells whether the usage exceeds the limit by more than this percentage. */
static bool is_above(const struct limit_sample *s, int percent)
{
    int64_t slack = s->limit / 100 * percent + s->limit % 100 * percent / 100;
    return s->limit > 0 && s->used > s->limit && s->used - s->limit > slack;
}

static const struct limit_sample *sample_find(const struct limit_sample *samples, size_t len, const char *resource)
{
    for (size_t i = 0; i < len; i++)
        if (samples[i].limit > 0 && strcmp(samples[i].resource, resource) == 0)
            return &samples[i];
    return NULL;
}

/* Returns the index of a resource, adding it if it is new. SIZE_MAX: no room. */
static size_t index_of(struct limit_watch *w, const char *resource)
{
    size_t i = 0;
    while (i < w->seen_len && strcmp(w->seen[i].resource, resource) != 0)
        i++;
    if (i < w->seen_len)
        return i;
    if (i == LIMIT_WATCH_MAX || strlen(resource) >= LIMIT_NAME_MAX)
        return SIZE_MAX;
    memset(&w->seen[i], 0, sizeof w->seen[i]);
    memcpy(w->seen[i].resource, resource, strlen(resource) + 1);
    w->seen_len++;
    return i;
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void over_list(const struct limit_watch *w, char ret[static CGROUP_LIST_MAX])
{
    const char *names[LIMIT_WATCH_MAX];
    size_t len = 0, used = 0;
    for (size_t i = 0; i < w->seen_len; i++)
        if (w->seen[i].over)
            names[len++] = w->seen[i].resource;
    if (len)
        qsort(names, len, sizeof *names, name_compare);
    *ret = '\0';
    for (size_t i = 0; i < len && used + strlen(names[i]) + 2 <= CGROUP_LIST_MAX; i++)
        used += (size_t)snprintf(ret + used, CGROUP_LIST_MAX - used, "%s%s", i ? "," : "", names[i]);
}

/* Resources whose unenforced limit, if far exceeded, causes a kill, with the parts of the message. */
static const struct kill_limit {
    const char *resource;
    int percent;
    const char *of, *limit, *rest;
} vitals[] = {
    {"memory",     FAR_PERCENT,   "memory",         "limit", ", and this machine's kernel does not enforce it; use a higher limit"},
    {"gpu-memory", FAR_PERCENT,   "a GPU's memory", "share",
     ", and other instances share this GPU; request a larger share"                                                               },
    {"storage",    ABOVE_PERCENT, "storage",        "limit", "; use a higher limit, or write less data"                           },
};

/* NULL: the resource is not vital, or its limit is enforced. */
static const struct kill_limit *kill_limit_of(const struct limit_sample *s)
{
    for (size_t i = 0; i < sizeof vitals / sizeof *vitals; i++)
        if (!s->enforced && strcmp(vitals[i].resource, s->resource) == 0)
            return &vitals[i];
    return NULL;
}

/* Builds the message for the user: the resource, the usage, the limit and a remedy. */
static void kill_text(const struct limit_sample *s, const struct kill_limit *v, char ret[static LIMIT_TEXT_MAX])
{
    char used[QUANTITY_TEXT_MAX], limit[QUANTITY_TEXT_MAX];
    int64_t mib = INT64_C(1) << 20;
    (void)snprintf(ret, LIMIT_TEXT_MAX, "killed: used %s of %s, its %s is %s%s",
                   quantity_print(s->resource, s->used >= mib ? s->used / mib * mib : s->used, used), v->of, v->limit,
                   quantity_print(s->resource, s->limit, limit), v->rest);
}

void limit_watch_update(struct limit_watch *w, const struct limit_sample *samples, size_t samples_len,
                        struct limit_verdict *ret)
{
    struct limit_verdict v = {.act = LIMIT_FINE};
    bool changed = false;
    for (size_t i = 0; i < w->seen_len;) {
        if (sample_find(samples, samples_len, w->seen[i].resource)) {
            i++;
            continue;
        }
        changed = changed || w->seen[i].over;
        w->seen[i] = w->seen[--w->seen_len];
    }
    for (size_t i = 0; i < samples_len; i++) {
        const struct limit_sample *s = &samples[i];
        size_t at = s->limit > 0 ? index_of(w, s->resource) : SIZE_MAX;
        if (at == SIZE_MAX)
            continue;
        bool above = is_above(s, ABOVE_PERCENT), within = s->used <= s->limit;
        const struct kill_limit *vital = kill_limit_of(s);
        bool far = vital && is_above(s, vital->percent);
        w->seen[at].above = above ? w->seen[at].above + 1 : 0;
        w->seen[at].below = within ? w->seen[at].below + 1 : 0;
        w->seen[at].far = far ? w->seen[at].far + 1 : 0;
        bool over = w->seen[at].over ? w->seen[at].below < BELOW_LOOKS : w->seen[at].above >= ABOVE_LOOKS;
        changed = changed || over != w->seen[at].over;
        w->seen[at].over = over;
        if (far && w->seen[at].far >= FAR_LOOKS) {
            v.act = LIMIT_KILL;
            kill_text(s, vital, v.text);
            v.memory = strcmp(s->resource, "memory") == 0;
        }
    }
    over_list(w, v.over);
    if (changed && v.act == LIMIT_FINE)
        v.act = LIMIT_REPORT;
    *ret = v;
}

/* ---- samples ---------------------------------------------------------------------------------------------------- */

/* Returns the increase per second, times `scale` / 1e9. */
static int64_t rate(int64_t now, int64_t then, int64_t passed_ns, int64_t scale)
{
    return now > then ? (int64_t)((__int128)(now - then) * scale / passed_ns) : 0;
}

size_t limit_watch_samples(struct limit_watch *w, const struct cgroup_limits *limits, const char *unenforced,
                           const struct cgroup_usage *usage, int64_t now_ns,
                           struct limit_sample ret[static LIMIT_SAMPLES_MAX])
{
    size_t len = 0;
    int64_t passed_ns = now_ns - w->at_ns;
    if (w->looked && passed_ns > 0) {
        int64_t second_ns = 1000000000;
        int64_t read = rate(usage->io_read_bytes, w->io_read_bytes, passed_ns, second_ns);
        int64_t written = rate(usage->io_write_bytes, w->io_write_bytes, passed_ns, second_ns);
        ret[len++] = (struct limit_sample){"cpu", rate(usage->cpu_ns, w->cpu_ns, passed_ns, 1000), limits->cpu_milli,
                                           !limit_names_has(unenforced, "cpu")};
        ret[len++] = (struct limit_sample){"io", read > written ? read : written, limits->io_bytes,
                                           !limit_names_has(unenforced, "io")};
    }
    ret[len++] = (struct limit_sample){"memory", usage->memory_bytes, limits->memory_bytes,
                                       !limit_names_has(unenforced, "memory")};
    ret[len++] = (struct limit_sample){"pids", usage->pids, limits->pids, !limit_names_has(unenforced, "pids")};
    w->looked = true;
    w->at_ns = now_ns;
    w->cpu_ns = usage->cpu_ns;
    w->io_read_bytes = usage->io_read_bytes;
    w->io_write_bytes = usage->io_write_bytes;
    return len;
}
