/* journal.h - what berth-kube decided and from what, on a disk of its own: --journal DIR.
 *
 * The API server stays the only truth (decision 27): nothing is ever read back to decide, and where the disk is full or gone, scheduling goes on without
 * a record and says so. What is written is enough to make every plan again (kube/journal/replay.h): each input of the projection and of the tenants, in order
 * (cache_input.h, tenant_input.h), what jobs claimed, and of each plan its moment, its hash and its actions.
 *
 * Records go to the log of a store in DIR (store/store.h), whose writer has a thread of its own, in batches: one for each plan, with all that came
 * before it, and one for what comes between plans. Old ones become sealed segments in DIR/journal (journal/seal.h), so `berth journal` reads them.
 * docs/kubernetes.md says what is in a record.
 *
 * It begins with a base: all that is known, as inputs. Another one follows now and then, so that old segments can go, and after a gap.
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
    const char *export_dir; /* of segments past the retention; NULL: they are removed */
    int64_t keep_ns;        /* how old segments may grow */
    uint64_t keep_bytes;    /* and how many bytes they may have in all */
    uint64_t segment_bytes; /* of records in a segment, about; 0: 16 MiB */
    struct project *project;
    struct tenants *tenants;       /* NULL: none */
    const char *profile;           /* by its name */
    const char *const *schedulers; /* names */
    size_t schedulers_len;
    const char *const *profiles; /* of each, as the projection has them */
    const char *identity;        /* who decides */
};

/* Touches no disk yet. Texts and lists are the caller's, who keeps them. */
struct kube_journal *kube_journal_new(const struct kube_journal_config *config);
void kube_journal_free(struct kube_journal *j); /* waits until all is written; NULL is fine */

/* Before each plan, with the projection settled: opens the store and writes a base where these are due. True: the projection's cluster is a new
 * one. */
bool kube_journal_turn(struct kube_journal *j, int64_t now_ns);
/* A plan was made, and nothing of it is carried out yet. */
void kube_journal_plan(struct kube_journal *j, int64_t now_ns, const struct berth_plan *plan);
/* Somebody else decides: the store is closed until kube_journal_turn is called again. */
void kube_journal_rest(struct kube_journal *j);

/* Listeners, for the projection, the tenants and the jobs; ctx is the journal. */
void kube_journal_input(void *ctx, const struct project_input *in);
void kube_journal_tenant(void *ctx, const struct tenant_input *in);
void kube_journal_claim(void *ctx, const char *role, const struct job_claim *claim);

struct kube_journal_stats {
    bool on;             /* what happens now is being recorded */
    const char *trouble; /* why not; "": nothing is wrong */
    uint64_t records, bytes, plans, bases, gaps, segments;
    size_t claims; /* roles whose claims are remembered, to be in the next base */
};
struct kube_journal_stats kube_journal_stats(const struct kube_journal *j);
