/* journal.h - the decision journal of berth-kube on its own disk: --journal DIR.
 *
 * The API server stays the only source of truth (decision 27): the journal is never read to decide, and if the disk is
 * full or missing, scheduling continues without a record and reports that. What is written suffices to make every plan
 * again (kube/journal/replay.h): each input of the cache and of the tenants in order (cache_input.h, tenant_input.h),
 * the claims of jobs, and for each plan its time, its hash and its actions.
 *
 * Records go to the log of a store in DIR (store/store.h), whose writer runs on its own thread, in batches: one per
 * plan with all inputs before it, and one for inputs between plans. Old records become sealed segments in DIR/journal
 * (journal/seal.h), so `berth journal` can read them. docs/kubernetes.md describes the records.
 *
 * The journal begins with a base: the whole state as inputs. Further bases follow from time to time, so that old
 * segments can be removed, and after each gap.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "berth.h"
#include "kube/cache/cache_input.h"
#include "kube/job/job_claim.h"
#include "kube/tenant/tenant_input.h"

struct kube_journal;
struct loop;

struct kube_journal_config {
    struct loop *loop;
    const struct log *log;
    const char *dir;
    const char *export_dir; /* for segments past the retention; NULL: they are removed */
    int64_t keep_ns;        /* retention time of segments */
    uint64_t keep_bytes;    /* retention size of all segments */
    uint64_t segment_bytes; /* approximate size of a segment's records; 0: 16 MiB */
    struct cache *cache;
    struct tenants *tenants;       /* NULL: no tenants */
    const char *profile;           /* name of the profile */
    const char *const *schedulers; /* scheduler names */
    size_t schedulers_len;
    const char *const *profiles; /* profile of each scheduler name, as in cache_config */
    const char *identity;        /* identity of this process */
};

/* Does not touch the disk yet. Texts and lists must outlive the journal. */
struct kube_journal *kube_journal_new(const struct kube_journal_config *config);
void kube_journal_free(struct kube_journal *j); /* waits until everything is written; accepts NULL */

/* Called before each plan, right after cache_cluster: opens the store and writes a base if these are due. Returns
 * true if the cache has a new cluster. */
bool kube_journal_prepare(struct kube_journal *j, int64_t now_ns);
/* Records a plan, before its actions are carried out. */
void kube_journal_plan(struct kube_journal *j, int64_t now_ns, const struct berth_plan *plan);
/* Closes the store until the next kube_journal_prepare; called when another process leads. */
void kube_journal_close(struct kube_journal *j);

/* Listeners for the cache, the tenants and the jobs; ctx is the journal. */
void kube_journal_input(void *ctx, const struct cache_change *in);
void kube_journal_tenant(void *ctx, const struct tenant_input *in);
void kube_journal_claim(void *ctx, const char *role, const struct job_claim *claim);

struct kube_journal_stats {
    bool on;             /* recording at present */
    const char *trouble; /* why it is not recording; "": no problem */
    uint64_t records, bytes, plans, bases, gaps, segments;
    size_t claims; /* roles whose claims are kept for the next base */
};
struct kube_journal_stats kube_journal_stats(const struct kube_journal *j);
