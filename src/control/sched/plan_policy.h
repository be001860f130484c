/* plan_policy.h - what the settings, queues, policies, windows and domains say of how to plan, beside the profile.
 *
 * A function of the state alone, so a replay of a decision has the same one: all of these are in the journal. It holds the
 * documents it was made of, and the formulas, which are compiled once for each revision of a policy: it may be used on
 * another thread while the state changes, and is made and given back on the state's own.
 *
 * A formula that fails does not stop the plan: the jobs it should have ordered come in order of their creation.
 */
#pragma once

#include "control/state/state.h"

struct plan_formula;
struct kept_doc;

struct plan_policy {
    struct berth_policy policy; /* without a profile; points into the arena */
    struct arena arena;
    struct kept_doc **kept;
    size_t kept_len;
    struct plan_formula **formulas;
    size_t formulas_len;
};

void plan_policy_read(const struct state *s, struct plan_policy *ret);
/* The plan has been made: formulas are given back. What the plan may still look at when it is asked stays. */
void plan_policy_made(struct plan_policy *p);
/* After the plan is gone. One of zeroes is left alone. */
void plan_policy_done(struct plan_policy *p);

/* A policy whose formula did not work in the plan, or does not compile, and why; each is told of once for each revision.
 * NULL: none, or no more. To be asked after the plan, on the state's thread. */
const char *plan_policy_failure(struct plan_policy *p, const char **ret_why);

/* Is it the name of an order that the core has itself? */
bool plan_policy_built_in(const char *name);
/* Could be planned by? A formula is compiled, and an empty cluster planned. -EINVAL: its line and reason. */
struct policy_doc;
int plan_policy_try(const struct policy_doc *d, struct berth_err *err);

/* What a unit of use costs, "cpu=1,gpu=10,memory=0.25", in thousandths; in the arena. -EINVAL. */
int charges_parse(const char *text, struct arena *arena, const struct berth_amount **ret, size_t *ret_len,
                  struct berth_err *err);
