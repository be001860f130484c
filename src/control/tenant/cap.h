/* cap.h - built-in caps per user: how much one user may store, request and have open at once.
 *
 * Quotas limit what a user uses of the nodes; caps limit what a user costs the daemon itself: memory, planning time,
 * streams. Each cap is a system setting (cap_*), 0 means none; `cap_exceptions` sets other values for single users and
 * groups. A cap is charged to the owner of an object, not to the caller. Callers with the permission 'system: all',
 * agents and the daemon itself are exempt. If a cap is lowered below present use, existing objects stay; only an
 * increase is rejected.
 *
 * The book counts what is stored, by the state's events, and what requests in progress are about to store. All of it is
 * O(1) per object.
 *
 * To add a cap: a member here, a row in cap.c, a setting, and its counting (cap_book.c).
 */
#pragma once

#include "control/state/state.h"

struct request;
struct cap_book;
struct work_doc;

enum cap {
    CAP_INSTANCES, /* replicas of apps and VMs, running or not */
    CAP_JOBS,      /* tasks of unfinished jobs; each task of an array counts */
    CAP_STORED,    /* bytes of documents, those of ended jobs included */
    CAP_TOKENS,
    CAP_WATCHES, /* open streams */
    CAPS
};

/* What a user has, or an increase of it. */
struct cap_amounts {
    int64_t of[CAPS];
};

/* An increase that a request in progress is about to store for one owner. */
struct cap_claim {
    const char *owner;
    struct cap_amounts add;
};

/* ---- the book (cap_book.c) -------------------------------------------------------------------------------------- */

struct cap_book *cap_book_new(void);
void cap_book_free(struct cap_book *b);
/* Adds an object (sign 1) or subtracts it (sign -1); called before and after each change of the object. */
void cap_book_count(struct cap_book *b, const struct object *o, int sign);
/* Counts amounts that are not stored: streams, and claims of requests in progress. */
void cap_book_hold(struct cap_book *b, const char *owner, const struct cap_amounts *amounts, int sign);
/* Returns everything that is counted for an owner. */
struct cap_amounts cap_book_use(const struct cap_book *b, const char *owner);
/* Returns whether objects of this kind count. */
bool cap_counts(enum kind kind);
/* Return the amounts of a stored object, and of a document that is about to be written as `text_len` bytes of text. */
struct cap_amounts cap_of_object(const struct object *o);
struct cap_amounts cap_of_doc(enum kind kind, const json_t *doc, size_t text_len, struct arena *arena);

/* ---- checks (cap.c) ---- */

/* Returns the cap's value for an owner; 0: none. */
int64_t cap_limit(const struct state *s, enum cap cap, const char *owner, struct arena *arena);
/* Checks a value of `cap_exceptions`: "user/alice:instances=50000,group/vision:jobs=200000". */
int cap_exceptions_check(const char *text, struct arena *arena, struct berth_err *err);
/* Checks a document before anything is planned with it. -EACCES: it has more replicas than the setting replicas_max
 * allows, for any caller, or it alone takes its owner above a cap. */
int cap_admit(struct request *c, enum kind kind, const char *id, const struct work_doc *d);
/* Returns -EACCES if the whole change takes an owner above a cap; the error has the cap's name, its value and what to
 * do. */
int cap_check(struct request *c);
/* Counts what a checked change adds until cap_release, so that concurrent requests see each other. */
void cap_hold(struct request *c);
void cap_release(struct request *c);
/* Returns -EACCES if a description with `fresh` new resource names would leave too few names for nodes. A cluster has
 * at most BERTH_RESOURCES_MAX names; callers without the permission 'nodes: all' may use the first half of them. */
int cap_names_check(struct request *c, size_t fresh);
/* Returns -EDQUOT if the caller has as many open streams as allowed. */
int cap_watch_check(struct request *c);
