/* predict.h - how long jobs run and how much memory they take, learned from those that ended well or by their limit.
 *
 * One small document for each owner and name of jobs, one for all of an owner, and one for everybody (KIND_PREDICTION): the last
 * runs as the predictor (past_runs.h) wants them, the last peaks of memory, what was estimated against what came out, and what is
 * published of all this. Names that differ in a number at their end count as one. What is published changes only when it has moved
 * by a quarter or more, or rests on nothing that is still remembered, and then its version grows: so a plan does not follow every run, and what was predicted can be told by its version. What
 * is published of everybody concerns every job that waits; it rests for ten minutes at least, once there are some runs.
 *
 * Plans look at what is published: it is in the journal, and a new version is told to the cluster (state.c). Nothing here
 * decides; the estimate of a job is its user's, else this, else its limit (sync_claim.c).
 */
#pragma once

#include "control/state/change.h"

enum { PREDICT_RUNS = 32, PREDICT_NAME_MAX = ID_MAX };
enum { PREDICT_KEEP_S = 90 * 86400 }; /* after the last run */
#define PREDICT_ALL "@all"            /* everybody's */

/* How long a task of a job will run that may run for limit_ns (0: as long as it likes) and has this size (past_runs.h); what plans go
 * by where its user said nothing. 0: nothing is known. */
int64_t predict_run_ns(const struct state *s, const char *owner, const char *name, int64_t limit_ns, int64_t size);
/* What half and nine of ten took, by the document of this name, else by the owner's. False: neither has published anything. O(1). */
bool predict_time(const struct state *s, const char *owner, const char *name, int64_t *ret_p50_ns, int64_t *ret_p90_ns,
                  uint64_t *ret_version);
/* The same of a job for people: {"seconds", "seconds_p50", "seconds_p90", "memory", "version", "of"}, the first of which is what
 * plans go by. A new reference; NULL: none. */
json_t *predict_show(const struct state *s, const struct object *job);

/* A task that ended well, or by its limit. */
struct predict_run {
    const char *owner, *name;
    int64_t ran_ns;
    int64_t estimate_ns; /* of its user; 0: none */
    int64_t memory;      /* its peak; 0: not known */
    int64_t at_ns;
    int64_t limit_ns, size; /* as above */
    bool beside;            /* a task of a gang but the first: only its memory counts */
};
/* Adds it to the change. */
void predict_learn(struct change *c, const struct predict_run *run);

/* ---- classes of jobs beside each other (predict_class.c) ----
 *
 * Of each class (`class` of a job) the mean run time is kept, by its own prediction, when it had its node to itself and
 * when it had not, and beside which classes: KIND_PREDICTION "@class/CLASS". Who was beside it is whoever is still there at
 * its end and was there before half of its time: those that came and went are not seen. */

enum { CLASSES_MAX = 256, BESIDE_MAX = 8, CLASS_RUNS_MIN = 8 };
#define PREDICT_CLASS "@class"

/* By how many millionths jobs of the class run longer beside others than alone; 0: not at all, or not known: each has been
 * seen CLASS_RUNS_MIN times. */
int32_t predict_interference(const struct state *s, const char *class_name);
/* Classes of those that shared the node with an instance, for its record: a list of texts, empty if it was alone. A new
 * reference. */
json_t *predict_beside(const struct state *s, const struct object *instance, int64_t start_ns, int64_t end_ns);
/* Adds a run to the change; `beside` as above. To be called before predict_learn, whose document it compares with. */
void predict_learn_class(struct change *c, const struct predict_run *run, const char *class_name, const json_t *beside);

/* The id of the document for a name: OWNER/STEM. */
const char *predict_id(const char *owner, const char *name, char buf[static OBJECT_KEY_MAX]);
/* "PREFIX/TEXT", of any text; "PREFIX" if it is empty. */
const char *predict_key(const char *prefix, const char *text, size_t len, char buf[static OBJECT_KEY_MAX]);
/* What a document publishes; the runs are in the arena. -EBADMSG for one that is none. */
int predict_read(const json_t *doc, struct arena *arena, struct prediction_view *ret, struct berth_err *err);
/* Is it of a user who is there, and not older than PREDICT_KEEP_S? For the sweep. */
bool predict_needed(const struct state *s, const struct object *prediction, int64_t now_ns);
