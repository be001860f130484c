/* explain.h - what each filter alone says of one demand once the plan is made: shared by explain.c (reasons) and
 * advice.c (changes that would help).
 *
 * Everything in an inquest lives in the scratch arena of the plan until inquest_end.
 */
#pragma once

#include "core/filter/filters.h"
#include "core/plan/plan.h"

/* One reason to refuse: a filter, or one aspect of it. */
struct verdict {
    const struct filter *filter;
    const char *what;
    uint32_t aspect;
    const uint64_t *refused; /* positions */
    uint64_t nodes, only;
    bool never; /* of amounts: no node of the cluster is that large, whatever it holds */
};

struct inquest {
    struct berth_plan *p;
    struct turn t;
    struct arena_mark mark;
    struct verdict *at;
    uint32_t len;
    uint64_t *any;  /* positions with a verdict against them */
    uint64_t *once; /* positions with one verdict against them, and no more */
};

/* Asks every filter that does not depend on time. */
void inquest_begin(struct inquest *q, struct berth_plan *p, const struct wish *w);
void inquest_end(struct inquest *q);

/* An amount in words: cpu in cores or thousandths; sizes in the largest binary unit they fill, with one decimal
 * rounded up or down, so that what is needed and what is there never look the same; everything else as it is. */
const char *explain_amount(struct arena *a, const char *resource, int64_t amount, bool up);
/* The key of the first taint of the node that the demand does not tolerate; 0: none. */
sym explain_taint(const struct inquest *q, uint32_t position);
