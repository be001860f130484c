/* predict.h - learns run times and peak memory from jobs that succeeded or reached their time limit.
 *
 * There is one small document for each owner and job name, one for each owner, and one for all users (KIND_PREDICTION).
 * Each document has the last runs in the form that the predictor (past_runs.h) uses, the last memory peaks, estimates
 * compared with real run times, and the published values. Names that differ only in a number at the end are one name.
 * Values are published again, with a new version, only if they have moved by a quarter or more, or if none of their
 * runs is remembered any more. So plans do not change with every run, and a version identifies a prediction. The values
 * of all users affect every waiting job; after the first runs they stay for at least ten minutes.
 *
 * Plans use the published values: these are in the journal, and each new version is told to the cluster (state.c).
 * Nothing is decided here. A job's estimate is its user's, else the prediction, else the limit (sync_scheduling.c).
 */
#pragma once

#include "control/state/change.h"

enum { PREDICT_RUNS = 32, PREDICT_NAME_MAX = ID_MAX };
enum { PREDICT_KEEP_S = 90 * 86400 }; /* after the last run */
#define PREDICT_ALL "@all"            /* the document of all users */

/* Returns the predicted run time of a task with this limit (limit_ns, 0: none) and size (past_runs.h). Plans use it if
 * the user gave no estimate. 0: nothing is known. */
int64_t predict_run_ns(const struct state *s, const char *owner, const char *name, int64_t limit_ns, int64_t size);
/* Gets the median and the 90th percentile of run times, from the document of this name, else of the owner. Returns
 * false if neither has published values. O(1). */
bool predict_time(const struct state *s, const char *owner, const char *name, int64_t *ret_p50_ns, int64_t *ret_p90_ns,
                  uint64_t *ret_version);
/* Returns a job's prediction for display: {"seconds", "seconds_p50", "seconds_p90", "memory", "version", "of"}; plans
 * use "seconds". A new reference; NULL: none. */
json_t *predict_show(const struct state *s, const struct object *job);

/* A task that succeeded or reached its time limit. */
struct predict_run {
    const char *owner, *name;
    int64_t ran_ns;
    int64_t estimate_ns; /* the user's estimate; 0: none */
    int64_t memory;      /* peak memory; 0: unknown */
    int64_t at_ns;
    int64_t limit_ns, size; /* as above */
    bool beside;            /* a task of a gang other than the first: only its memory counts */
};
/* Adds the run to the change. */
void predict_learn(struct change *c, const struct predict_run *run);

/* ---- interference between job classes (predict_class.c) ----
 *
 * For each class (`class` of a job) the document "@class/CLASS" (KIND_PREDICTION) has the mean run time relative to the
 * prediction: alone on a node, beside other classes, and beside each of them. A neighbour is an instance that still
 * runs at the end of the run and started before half of its time; shorter neighbours are not seen.
 */

enum { CLASSES_MAX = 256, NEIGHBOURS_MAX = 8, CLASS_RUNS_MIN = 8 };
#define PREDICT_CLASS "@class"

/* Returns by how many millionths jobs of the class run longer beside others than alone; 0: not at all, or unknown: both
 * need CLASS_RUNS_MIN runs. */
int32_t predict_interference(const struct state *s, const char *class_name);
/* Returns the classes of the instances that shared the node with an instance, for its record: a list of strings, empty
 * if the instance was alone. A new reference. */
json_t *predict_neighbour_classes(const struct state *s, const struct object *instance, int64_t start_ns,
                                  int64_t end_ns);
/* Adds a run to the change; `beside` as above. Call before predict_learn, because it compares with that document. */
void predict_learn_class(struct change *c, const struct predict_run *run, const char *class_name, const json_t *beside);

/* Returns the document ID of a name: OWNER/STEM. */
const char *predict_id(const char *owner, const char *name, char buf[static OBJECT_KEY_MAX]);
/* Returns "PREFIX/TEXT" with any text encoded; "PREFIX" if the text is empty. */
const char *predict_key(const char *prefix, const char *text, size_t len, char buf[static OBJECT_KEY_MAX]);
/* Reads the published values of a document; the runs are in the arena. -EBADMSG: not a prediction document. */
int predict_read(const json_t *doc, struct arena *arena, struct prediction_view *ret, struct berth_err *err);
/* Returns whether the document is kept by the sweep: its user exists and its last run is not older than
 * PREDICT_KEEP_S. */
bool predict_needed(const struct state *s, const struct object *prediction, int64_t now_ns);
