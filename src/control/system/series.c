#include "control/system/series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "control/control_parts.h"
#include "control/explain/occupancy.h"
#include "wire/doc/api.h"

#define SECOND_NS INT64_C(1000000000)

enum series_column {
    NODES,
    READY,
    CPU_THERE,
    CPU_HELD,
    MEMORY_THERE,
    MEMORY_HELD,
    GPU_THERE,
    GPU_HELD,
    WAITING,
    MEDIAN_WAIT,
    LONGEST_WAIT,
    COLUMNS
};

/* Names in the answer: a member of its own, or a part of one. */
static const struct {
    const char *name, *part; /* part NULL: a member of its own */
} told[COLUMNS] = {
    [NODES] = {"nodes",          NULL   },
    [READY] = {"ready",          NULL   },
    [CPU_THERE] = {"cpu",            "there"},
    [CPU_HELD] = {"cpu",            "held" },
    [MEMORY_THERE] = {"memory",         "there"},
    [MEMORY_HELD] = {"memory",         "held" },
    [GPU_THERE] = {"gpu",            "there"},
    [GPU_HELD] = {"gpu",            "held" },
    [WAITING] = {"waiting",        NULL   },
    [MEDIAN_WAIT] = {"median_wait_s",  NULL   },
    [LONGEST_WAIT] = {"longest_wait_s", NULL   },
};

struct series_point {
    int64_t at_ns;
    double of[COLUMNS];
};

/* A ring buffer of the last `cap` points; `first` is the oldest. */
struct ring {
    struct series_point *at;
    size_t len, first, cap;
};

struct series {
    struct control *control;
    struct ring fine, coarse;
    struct series_point gathering; /* sums of the unfinished five minutes; at_ns: time of their last point */
    size_t gathered;
    int64_t begun_ns, next_ns; /* `next_ns` is of the steady clock */
};

static void ring_init(struct ring *r, size_t cap)
{
    *r = (struct ring){.at = mem_zarray(cap, sizeof *r->at), .cap = cap};
}

static void ring_push(struct ring *r, const struct series_point *p)
{
    if (r->len < r->cap) {
        r->at[r->len++] = *p;
        return;
    }
    r->at[r->first] = *p;
    r->first = (r->first + 1) % r->cap;
}

struct series *series_new(struct control *control)
{
    struct series *s = mem_zalloc(sizeof *s);
    s->control = control;
    s->begun_ns = control_now_ns(control);
    ring_init(&s->fine, SERIES_FINE_LEN);
    ring_init(&s->coarse, SERIES_COARSE_LEN);
    return s;
}

void series_free(struct series *s)
{
    if (!s)
        return;
    mem_free(s->fine.at);
    mem_free(s->coarse.at);
    mem_free(s);
}

/* ---- sampling --------------------------------------------------------------------------------------------------- */

struct created_times {
    const struct state *state;
    VEC(int64_t) created_ns;
};

static void wait_add(void *ctx, const char *workload)
{
    struct created_times *w = ctx;
    const struct object *work = state_find_work(w->state, workload);
    if (work)
        vec_push(&w->created_ns, work->work->created_ns);
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Reads the waiting workloads of the last plan. */
static void created_times_take(const struct control *c, struct series_point *p)
{
    struct created_times w = {.state = c->state};
    p->of[WAITING] = (double)scheduler_each_waiting(c->scheduler, SERIES_LOOKED_AT, wait_add, &w);
    if (w.created_ns.len) {
        size_t middle = w.created_ns.len / 2;
        qsort(w.created_ns.at, w.created_ns.len, sizeof *w.created_ns.at, by_time);
        p->of[MEDIAN_WAIT] = (double)(p->at_ns - w.created_ns.at[middle]) / (double)SECOND_NS;
        p->of[LONGEST_WAIT] = (double)(p->at_ns - w.created_ns.at[0]) / (double)SECOND_NS;
    }
    vec_done(&w.created_ns);
}

static void point_take(struct control *c, struct series_point *p)
{
    struct occupancy_sum sum;
    *p = (struct series_point){.at_ns = control_now_ns(c)};
    occupancy_total(c->state, &sum);
    p->of[NODES] = (double)sum.nodes;
    p->of[READY] = (double)sum.ready;
    for (size_t i = 0; i < USES; i++) {
        p->of[CPU_THERE + 2 * i] = occupancy_units(i, sum.use[i].there);
        p->of[CPU_HELD + 2 * i] = occupancy_units(i, sum.use[i].held);
    }
    created_times_take(c, p);
}

/* Adds the point to the mean of five minutes. */
static void gather(struct series *s, const struct series_point *p)
{
    int64_t span_ns = SERIES_COARSE_S * SECOND_NS;
    if (s->gathered && p->at_ns / span_ns != s->gathering.at_ns / span_ns) {
        for (size_t i = 0; i < COLUMNS; i++)
            s->gathering.of[i] /= (double)s->gathered;
        ring_push(&s->coarse, &s->gathering);
        s->gathering = (struct series_point){0};
        s->gathered = 0;
    }
    for (size_t i = 0; i < COLUMNS; i++)
        s->gathering.of[i] += p->of[i];
    s->gathering.at_ns = p->at_ns;
    s->gathered++;
}

void series_step(struct series *s, int64_t steady_ns)
{
    struct series_point p;
    if (steady_ns < s->next_ns)
        return;
    s->next_ns = steady_ns + SERIES_FINE_S * SECOND_NS;
    point_take(s->control, &p);
    ring_push(&s->fine, &p);
    gather(s, &p);
}

/* ---- the route -------------------------------------------------------------------------------------------------- */

static void point_add(json_t *const lists[static COLUMNS + 1], const struct series_point *p, size_t of)
{
    (void)json_array_append_new(lists[COLUMNS], json_integer(p->at_ns / SECOND_NS));
    for (size_t i = 0; i < COLUMNS; i++)
        (void)json_array_append_new(lists[i], json_real(p->of[i] / (double)of));
}

int series_run(struct request *c)
{
    const struct series *s = c->control->series;
    const char *span = request_query(c, "span");
    bool week = span && strcmp(span, "week") == 0;
    char since[TIMESTAMP_MAX];
    if (span && !week && strcmp(span, "hour") != 0)
        return err_set(&c->err, EINVAL, "span: expected hour or week");
    const struct ring *ring = week ? &s->coarse : &s->fine;
    json_t *body = json_pack("{s:s, s:i, s:s}", "span", week ? "week" : "hour", "every_s",
                             week ? SERIES_COARSE_S : SERIES_FINE_S, "since", timestamp_text(s->begun_ns, since));
    json_t *lists[COLUMNS + 1];
    for (size_t i = 0; i < COLUMNS; i++) {
        json_t *to = told[i].part ? json_object_get(body, told[i].name) : body;
        if (!to) {
            to = json_object();
            (void)json_object_set_new(body, told[i].name, to);
        }
        lists[i] = json_array();
        (void)json_object_set_new(to, told[i].part ? told[i].part : told[i].name, lists[i]);
    }
    lists[COLUMNS] = json_array();
    (void)json_object_set_new(body, "at", lists[COLUMNS]);
    for (size_t i = 0; i < ring->len; i++)
        point_add(lists, &ring->at[(ring->first + i) % ring->cap], 1);
    if (week && s->gathered)
        point_add(lists, &s->gathering, s->gathered);
    c->answer.body = body;
    return 0;
}
