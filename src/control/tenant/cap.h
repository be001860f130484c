/* cap.h - built-in caps per user: how much one user may have stored, wanted and open at once.
 *
 * Quotas bound what a user holds of the nodes; caps bound what a user costs the daemon itself: memory, planning time,
 * streams. Each cap is a system setting (cap_*), 0 means none, and `cap_exceptions` gives single users and groups others.
 * A cap is charged to the owner of an object, whoever writes it. Callers with the permission 'system: all', agents and the
 * daemon itself are exempt. What is above a cap, since the cap was lowered, stays; only an increase is refused.
 *
 * The book counts what is stored, from the state's events, and what requests under way are about to store. All of it is
 * O(1) for each object.
 *
 * To add a cap: a member here, a row in cap.c, a setting, and what counts (cap_book.c).
 */
#pragma once

#include "control/state/state.h"

struct call;
struct cap_book;
struct work_doc;

enum cap {
    CAP_INSTANCES, /* replicas of apps and vms, running or not */
    CAP_JOBS,      /* tasks of jobs that are not over: an array counts each of its tasks */
    CAP_STORED,    /* bytes of documents, jobs that are over included */
    CAP_TOKENS,
    CAP_WATCHES, /* streams that are open */
    CAPS
};

/* The amounts that a user has, or an increase of them. */
struct cap_amounts {
    int64_t of[CAPS];
};

/* An increase that a request is about to store, for one owner. */
struct cap_claim {
    const char *owner;
    struct cap_amounts add;
};

/* ---- the book (cap_book.c) ---- */

struct cap_book *cap_book_new(void);
void cap_book_free(struct cap_book *b);
/* Counts an object in (sign 1) or out (sign -1): before and after each change of it. */
void cap_book_count(struct cap_book *b, const struct object *o, int sign);
/* Counts what is not stored: streams, and claims of requests under way. */
void cap_book_hold(struct cap_book *b, const char *owner, const struct cap_amounts *amounts, int sign);
/* All that is counted for an owner. */
struct cap_amounts cap_book_use(const struct cap_book *b, const char *owner);
/* Do objects of this kind count at all? */
bool cap_counts(enum kind kind);
/* The amounts of a stored object, and of a document that is about to be written as a text of so many bytes. */
struct cap_amounts cap_of_object(const struct object *o);
struct cap_amounts cap_of_doc(enum kind kind, const json_t *doc, size_t text_len, struct arena *arena);

/* ---- checks (cap.c) ---- */

/* The amount in force for an owner; 0: none. */
int64_t cap_limit(const struct state *s, enum cap cap, const char *owner, struct arena *arena);
/* Is a text one that `cap_exceptions` may have? "user/alice:instances=50000,group/vision:jobs=200000" */
int cap_exceptions_check(const char *text, struct arena *arena, struct berth_err *err);
/* -EACCES for one document with more replicas than the setting replicas_max, whoever writes it, and for one that alone
 * takes its owner above a cap: before anything is planned with it. */
int cap_admit(struct call *c, enum kind kind, const char *id, const struct work_doc *d);
/* -EACCES when the change as a whole takes an owner above a cap, with its name, its value and what to do. */
int cap_check(struct call *c);
/* Counts what a checked change adds until cap_release: requests at the same time see each other. */
void cap_hold(struct call *c);
void cap_release(struct call *c);
/* -EACCES when a description with `fresh` new names of resources would leave too few for nodes. A cluster has at most
 * BERTH_RESOURCES_MAX names; callers without the permission 'nodes: all' may use the first half of them. */
int cap_names_check(struct call *c, size_t fresh);
/* -EDQUOT when the caller has as many streams open as it may. */
int cap_watch_check(struct call *c);
