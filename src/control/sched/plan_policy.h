/* plan_policy.h - the planning policy as the settings, queues, policies, windows and domains define it, without the
 * profile.
 *
 * The policy is a function of the state alone. All of its inputs are in the journal, so a replay of a decision gets the
 * same policy. It keeps references to the documents it was made from, and to the formulas, which are compiled once for
 * each revision of a policy. It may be used on another thread while the state changes; it is created and released on
 * the state's thread.
 *
 * A formula that fails does not stop the plan: its jobs are ordered by creation time.
 */
#pragma once

#include "control/state/state.h"

struct plan_formula;
struct cached_spec;

struct plan_policy {
    struct berth_policy policy; /* without a profile; points into the arena */
    struct arena arena;
    struct cached_spec **kept;
    size_t kept_len;
    struct plan_formula **formulas;
    size_t formulas_len;
};

void plan_policy_read(const struct state *s, struct plan_policy *ret);
/* Releases the formulas after the plan was made. Data that the plan reads for later questions stays. */
void plan_policy_release_formulas(struct plan_policy *p);
/* Frees everything; call after the plan is freed. A zeroed struct is accepted. */
void plan_policy_done(struct plan_policy *p);

/* Returns the name of a policy whose formula failed in the plan or does not compile, and the error; NULL: no more. Each
 * policy is reported once per revision. Call after the plan was made, on the state's thread. */
const char *plan_policy_failure(struct plan_policy *p, const char **ret_why);

/* Returns whether the core has a built-in ranking of this name. */
bool plan_policy_built_in(const char *name);
/* Checks that the policy works: compiles its formula and plans an empty cluster. -EINVAL: the error names line and
 * reason. */
struct policy_doc;
int plan_policy_check(const struct policy_doc *d, struct berth_err *err);

/* Parses charges for use, "cpu=1,gpu=10,memory=0.25", into thousandths in the arena. -EINVAL on syntax errors. */
int charges_parse(const char *text, struct arena *arena, const struct berth_amount **ret, size_t *ret_len,
                  struct berth_err *err);
