/* replay_ops.h - applies the changes of journal records to the cache and tenants of a replay; the decoder of
 * journal_ops.h.
 */
#pragma once

#include <jansson.h>

#include "journal/scan.h"
#include "kube/journal/journal_ops.h"
#include "kube/journal/replay_validate.h"
#include "kube/sched/policy.h"

struct replay_template {
    uint64_t hash;
    struct str bytes;
};
struct replay_claim {
    char *role;
    json_t *doc; /* null: its job is gone */
};

struct replay_state {
    struct cache *cache; /* NULL: no base has begun */
    struct tenants *tenants;
    struct kube_policy policy;
    char **schedulers, **profiles;
    size_t schedulers_len;
    bool base; /* the inputs of a base are being read */
    VEC(struct replay_template) templates;
    struct map templates_by_hash;
    VEC(struct replay_claim) claims;
    struct map claims_by_role;
    struct replay_numbers numbers; /* instances of the base, while it is being read */
    struct journal_hashes hashes;
    struct str text, bytes;
    char odd[BERTH_ERR_TEXT_MAX]; /* first input since the last plan with another result than recorded; "" */
};

void replay_state_done(struct replay_state *r);
/* Applies one change, including its brackets. *ret_word: its word. -EBADMSG if it is unreadable. */
int replay_state_apply(struct replay_state *r, struct bytes change, enum journal_word *ret_word, struct berth_err *err);
