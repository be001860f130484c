/* explain.h - the verdict of each single filter on a demand after the plan was made; shared by explain.c (reasons) and
 * advice.c (changes that would help).
 *
 * All data of a struct filter_report lives in the scratch arena of the plan until filter_report_end.
 */
#pragma once

#include "core/filter/filters.h"
#include "core/plan/plan.h"

/* One reason to refuse nodes: a filter, or one aspect of a filter. */
struct filter_verdict {
    const struct filter *filter;
    const char *what;
    uint32_t aspect;
    const uint64_t *refused; /* bit set of positions */
    uint64_t nodes, only;
    bool never; /* for amounts: no node of the cluster has that capacity */
};

struct filter_report {
    struct berth_plan *p;
    struct attempt t;
    struct arena_mark mark;
    struct filter_verdict *at;
    uint32_t len;
    uint64_t *any;  /* bit set of positions with a verdict against them */
    uint64_t *once; /* bit set of positions with exactly one verdict against them */
};

/* Runs every filter that does not depend on time. */
void filter_report_begin(struct filter_report *q, struct berth_plan *p, const struct demand *w);
void filter_report_end(struct filter_report *q);

/* Formats an amount: cpu in cores or thousandths; sizes in the largest binary unit that they fill, with one decimal
 * rounded up or down, so that an amount needed and an amount free never look the same; other amounts as plain
 * numbers. */
const char *explain_amount(struct arena *a, const char *resource, int64_t amount, bool up);
/* Returns the key of the node's first taint that the demand does not tolerate; 0: none. */
sym explain_taint(const struct filter_report *q, uint32_t position);
