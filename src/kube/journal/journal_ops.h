/* journal_ops.h - encoding of inputs in the journal: the changes of a record, each [key, document], in order.
 *
 * A key begins with a word, by which inputs are also hashed: "pods/default:web-1", "assume/default:web-1",
 * "queues/gpu". Objects are stripped protobuf in base64 (`pb`). The shared part of pods is written once as
 * "templates/HASH" and then referenced (`t`). docs/kubernetes.md has the table. The decoder is replay_ops.c.
 */
#pragma once

#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "kube/cache/cache_input.h"
#include "kube/job/job_claim.h"
#include "kube/tenant/tenant_input.h"

/* Words of keys. Those of objects come first, in the order of enum cache_kind. */
enum journal_word {
    WORD_SETTLE = CACHE_POD_GROUP + 1,
    WORD_ASSUME,
    WORD_PROMOTE,
    WORD_FORGET,
    WORD_STOPPING,
    WORD_REPORTED,
    WORD_ROLES,
    WORD_ROLE_CHANGED,
    WORD_TASKS,
    WORD_TASK_ENDS,
    WORD_TASKS_RERUN,
    WORD_BACKOFF,
    WORD_CLAIM_VOLUMES,
    WORD_RENEW,
    WORD_TEMPLATES,
    WORD_ROLE_CLAIMS,
    WORD_TENANTS,
    WORD_TENANT_DROP,
    WORD_TENANT_RECALL,
    WORD_TENANT_RECHECK,
    WORD_TENANT_USAGE,
    WORD_TENANT_FORCE,
    WORD_TENANT_CLAIMED,
    WORD_BASE,
    WORDS
};
extern const char *const journal_words[WORDS];

/* Hashes over all inputs of each word, in order, since the base. */
struct journal_hashes {
    uint64_t at[WORDS];
    bool changed[WORDS]; /* since the last plan */
};
/* Adds a change as written, including its brackets. */
void journal_hash_add(struct journal_hashes *h, enum journal_word word, const char *change, size_t len);
/* Adds "kinds":{"pods":"HEX", ...} with the hashes that changed, and resets `changed`. */
void journal_hashes_write(struct journal_hashes *h, struct str *to);

struct journal_ops {
    struct str key;
    VEC(uint64_t) templates; /* hashes of the templates written since the base */
    struct map by_hash;
    struct journal_hashes hashes;
};
void journal_ops_done(struct journal_ops *o);
/* Starts a base: no template is written yet. */
void journal_ops_clear(struct journal_ops *o);

/* Each appends its changes to a JSON array. */
void journal_input_write(struct journal_ops *o, const struct cache_change *in, struct str *to);
void journal_tenant_write(struct journal_ops *o, const struct tenant_input *in, struct str *to);
/* Writes the document of a claim only; "null": its job is gone. */
void journal_claim_text(const struct job_claim *claim, struct str *to);
void journal_change_write(struct journal_ops *o, enum journal_word word, const char *id, const char *doc, size_t len,
                          struct str *to);
