/* limit_watch.c - looks in a row, above and below. */
#include "machine/limit_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/quantity.h"

enum { ABOVE_LOOKS = 3, BELOW_LOOKS = 3, FAR_LOOKS = 5, ABOVE_PERCENT = 5, FAR_PERCENT = 20 };

/* Is it above the limit by more than this much? */
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

/* The place of a resource; a new one has nothing behind it. SIZE_MAX: there is no room. */
static size_t place_of(struct limit_watch *w, const char *resource)
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

/* The least that can be said to somebody whose work was ended: what, how much, and what to do. */
static void kill_text(const struct limit_sample *s, char ret[static LIMIT_TEXT_MAX])
{
    char used[QUANTITY_TEXT_MAX], limit[QUANTITY_TEXT_MAX];
    int64_t mib = INT64_C(1) << 20;
    (void)snprintf(
        ret, LIMIT_TEXT_MAX,
        "killed: it used %s of memory, its limit is %s, and this machine's kernel does not enforce it; give it "
        "a higher limit",
        quantity_print("memory", s->used >= mib ? s->used / mib * mib : s->used, used),
        quantity_print("memory", s->limit, limit));
}

void limit_watch_look(struct limit_watch *w, const struct limit_sample *samples, size_t samples_len,
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
        size_t at = s->limit > 0 ? place_of(w, s->resource) : SIZE_MAX;
        if (at == SIZE_MAX)
            continue;
        bool above = is_above(s, ABOVE_PERCENT), within = s->used <= s->limit;
        bool far = !s->enforced && strcmp(s->resource, "memory") == 0 && is_above(s, FAR_PERCENT);
        w->seen[at].above = above ? w->seen[at].above + 1 : 0;
        w->seen[at].below = within ? w->seen[at].below + 1 : 0;
        w->seen[at].far = far ? w->seen[at].far + 1 : 0;
        bool over = w->seen[at].over ? w->seen[at].below < BELOW_LOOKS : w->seen[at].above >= ABOVE_LOOKS;
        changed = changed || over != w->seen[at].over;
        w->seen[at].over = over;
        if (w->seen[at].far >= FAR_LOOKS) {
            v.act = LIMIT_KILL;
            kill_text(s, v.text);
        }
    }
    over_list(w, v.over);
    if (changed && v.act == LIMIT_FINE)
        v.act = LIMIT_REPORT;
    *ret = v;
}

/* ---- samples ------------------------------------------------------------------------------------------------------ */

static bool in_list(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = list; at && *at; at = strchr(at, ','), at = at ? at + 1 : NULL)
        if (strncmp(at, name, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    return false;
}

/* A second's worth of what came in the meantime, times `scale`. */
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
                                           !in_list(unenforced, "cpu")};
        ret[len++] =
            (struct limit_sample){"io", read > written ? read : written, limits->io_bytes, !in_list(unenforced, "io")};
    }
    ret[len++] =
        (struct limit_sample){"memory", usage->memory_bytes, limits->memory_bytes, !in_list(unenforced, "memory")};
    ret[len++] = (struct limit_sample){"pids", usage->pids, limits->pids, !in_list(unenforced, "pids")};
    w->looked = true;
    w->at_ns = now_ns;
    w->cpu_ns = usage->cpu_ns;
    w->io_read_bytes = usage->io_read_bytes;
    w->io_write_bytes = usage->io_write_bytes;
    return len;
}
