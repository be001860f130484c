#include "control/job/predict.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "control/job/past_runs.h"
#include "control/state/sync.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/moment.h"

enum {
    MILLISECOND = 1000000,
    DOCUMENTS_MAX = 20000, /* from this number on only existing documents and those of owners are updated */
    OWNER_RUNS_MIN = 4,    /* an owner's runs count for other names from this number on */
    ALL_RUNS = 16,         /* with more runs, values of all users stay for ALL_REST_S */
    ALL_REST_S = 600,
};

/* ---- names ------------------------------------------------------------------------------------------------------ */

/* Returns the length without a trailing number: "sweep-17" is "sweep". A name that is only a number stays. */
static size_t stem_len(const char *name)
{
    size_t len = strlen(name), end = len;
    while (end > 0 && strchr("0123456789", name[end - 1]))
        end--;
    if (end == len)
        return len;
    while (end > 0 && strchr("-_.", name[end - 1]))
        end--;
    return end ? end : len;
}

/* Store keys allow few characters, names any: other characters become '_', followed by a hash. */
const char *predict_key(const char *prefix, const char *text, size_t len, char buf[static OBJECT_KEY_MAX])
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t at = (size_t)snprintf(buf, OBJECT_KEY_MAX / 2, "%s%s", prefix, len ? "/" : "");
    bool same = len <= PREDICT_NAME_MAX;
    for (size_t i = 0; i < len && i < PREDICT_NAME_MAX; i++) {
        bool good = text[i] && strchr(plain, text[i]);
        same = same && good;
        buf[at++] = good ? text[i] : '_';
    }
    buf[at] = 0;
    if (!same)
        (void)snprintf(buf + at, OBJECT_KEY_MAX - at, "_%016" PRIx64, hash_bytes(text, len, 0));
    return buf;
}

const char *predict_id(const char *owner, const char *name, char buf[static OBJECT_KEY_MAX])
{
    return predict_key(owner, name ? name : "", name ? stem_len(name) : 0, buf);
}

/* ---- published values ------------------------------------------------------------------------------------------- */

/* Returns a run in its stored form: [run_ms, limit_ms, size]. */
static json_t *past_run_write(const struct predict_run *run)
{
    return json_pack("[I, I, I]", (json_int_t)(run->ran_ns / MILLISECOND), (json_int_t)(run->limit_ns / MILLISECOND),
                     (json_int_t)run->size);
}

static bool past_run_read(const json_t *row, struct past_run *ret)
{
    int64_t got[3];
    if (json_array_size(row) != 3)
        return false;
    for (size_t i = 0; i < 3; i++) {
        const json_t *number = json_array_get(row, i);
        got[i] = json_integer_value(number);
        if (!json_is_integer(number) || got[i] < 0 || (i < 2 && got[i] > INT64_MAX / MILLISECOND))
            return false;
    }
    *ret = (struct past_run){got[0] * MILLISECOND, got[1] * MILLISECOND, got[2]};
    return true;
}

/* Reads a list of runs, oldest first. Returns false if an entry is malformed. */
static bool past_runs_read(const json_t *list, struct past_runs *ret)
{
    size_t i;
    json_t *row;
    *ret = (struct past_runs){0};
    json_array_foreach(list, i, row)
    {
        struct past_run past;
        if (!past_run_read(row, &past))
            return false;
        past_runs_add(ret, &past);
    }
    return true;
}

int predict_read(const json_t *doc, struct arena *arena, struct prediction_view *ret, struct berth_err *err)
{
    const json_t *published = json_object_get(doc, "published");
    static const char *const names[] = {"version", "p50_ms", "p90_ms", "memory", "slower"};
    int64_t got[5] = {0};
    for (size_t i = 0; i < 5; i++) {
        const json_t *number = json_object_get(published, names[i]);
        if (number && (!json_is_integer(number) || json_integer_value(number) < 0))
            return err_set(err, EBADMSG, "published.%s: expected a whole number", names[i]);
        got[i] = number ? json_integer_value(number) : 0;
    }
    if (got[1] > INT64_MAX / MILLISECOND || got[2] > INT64_MAX / MILLISECOND)
        return err_set(err, EBADMSG, "published: the time is too long");
    struct past_runs *past_runs = NULL;
    const json_t *list = json_object_get(published, "past");
    if (list && !past_runs_read(list, past_runs = arena_alloc(arena, sizeof *past_runs)))
        return err_set(err, EBADMSG, "published.past: expected runs as [milliseconds, limit, size]");
    *ret = (struct prediction_view){.past_runs = past_runs,
                                    .slower = (int32_t)(got[4] < 1000000 ? got[4] : 1000000),
                                    .version = (uint64_t)got[0],
                                    .p50_ns = got[1] * MILLISECOND,
                                    .p90_ns = got[2] * MILLISECOND,
                                    .memory = got[3]};
    return 0;
}

static const struct object *best(const struct state *s, const char *owner, const char *name)
{
    char id[OBJECT_KEY_MAX];
    if (!owner || !*owner)
        return NULL;
    const struct object *o = state_find(s, KIND_PREDICTION, predict_id(owner, name, id));
    if (!o || !o->prediction->version)
        o = state_find(s, KIND_PREDICTION, owner);
    return o && o->prediction->version ? o : NULL;
}

bool predict_time(const struct state *s, const char *owner, const char *name, int64_t *ret_p50_ns, int64_t *ret_p90_ns,
                  uint64_t *ret_version)
{
    const struct object *o = best(s, owner, name);
    if (!o)
        return false;
    *ret_p50_ns = o->prediction->p50_ns;
    *ret_p90_ns = o->prediction->p90_ns;
    *ret_version = o->prediction->version;
    return true;
}

int64_t predict_run_ns(const struct state *s, const char *owner, const char *name, int64_t limit_ns, int64_t size)
{
    const struct object *own = best(s, owner, name), *all = state_find(s, KIND_PREDICTION, PREDICT_ALL);
    if (!owner || !*owner)
        return 0;
    if (own && !own->prediction->past_runs) /* published by an earlier version, which used the 90th percentile */
        return own->prediction->p90_ns;
    int64_t cut_ns = limit_ns - limit_ns % MILLISECOND; /* stored runs have limits in whole milliseconds */
    int64_t ns =
        past_predict(own ? own->prediction->past_runs : NULL, all ? all->prediction->past_runs : NULL, cut_ns, size);
    return ns == cut_ns ? limit_ns : ns;
}

json_t *predict_show(const struct state *s, const struct object *job)
{
    const struct work_view *w = job->work;
    const struct object *o = best(s, job->owner, w->name);
    if (!o)
        return NULL;
    const struct prediction_view *p = o->prediction;
    int64_t limit_ns = w->limit_ns ? w->limit_ns : queue_terms(s, w->queue).time_limit_ns;
    int64_t ns = predict_run_ns(s, job->owner, w->name, limit_ns, w->size);
    json_t *shown = json_pack("{s:f, s:f, s:I, s:s}", "seconds_p50", (double)p->p50_ns / 1e9, "seconds_p90",
                              (double)p->p90_ns / 1e9, "version", (json_int_t)p->version, "of", o->id);
    if (ns)
        (void)json_object_set_new(shown, "seconds", json_real((double)ns / 1e9));
    if (p->memory)
        (void)json_object_set_new(shown, "memory", json_integer(p->memory));
    return shown;
}

/* ---- learning --------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Returns the smallest value that `percent` percent do not exceed; 0 if there is none. */
static int64_t quantile(int64_t *values, size_t len, unsigned percent)
{
    qsort(values, len, sizeof *values, compare);
    return len ? values[(len * percent + 99) / 100 - 1] : 0;
}

/* Gets the last PREDICT_RUNS values of a list; for runs, their run times. */
static size_t last_of(const json_t *list, int64_t ret[static PREDICT_RUNS])
{
    size_t len = json_array_size(list), n = len < PREDICT_RUNS ? len : PREDICT_RUNS;
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(list, len - n + i);
        ret[i] = json_integer_value(json_is_array(value) ? json_array_get(value, 0) : value);
    }
    return n;
}

static void list_push(json_t *doc, const char *key, json_t *value, size_t most)
{
    json_t *list = json_object_get(doc, key);
    if (!list)
        (void)json_object_set_new(doc, key, list = json_array());
    (void)json_array_append_new(list, value);
    while (json_array_size(list) > most)
        (void)json_array_remove(list, 0);
}

static bool moved(int64_t was, int64_t is)
{
    int64_t apart = is > was ? is - was : was - is;
    return apart > was / 4;
}

/* Returns whether none of the runs behind the published values is remembered any more. */
static bool is_stale(const json_t *doc)
{
    const json_t *published = json_object_get(doc, "published");
    json_int_t since =
        json_integer_value(json_object_get(doc, "runs")) - json_integer_value(json_object_get(published, "runs"));
    return since >= (json_int_t)json_array_size(json_object_get(doc, "past"));
}

/* Returns whether the prediction for a job like the last one has changed, given the published values of all users
 * (NULL: `doc` is that document). */
static bool prediction_differs(const json_t *doc, const json_t *all, const struct predict_run *run)
{
    struct past_runs older, newer, others;
    int64_t limit_ns = run->limit_ns - run->limit_ns % MILLISECOND, was_ns, is_ns;
    if (is_stale(doc) || !past_runs_read(json_object_get(json_object_get(doc, "published"), "past"), &older) ||
        !past_runs_read(json_object_get(doc, "past"), &newer) ||
        !past_runs_read(json_object_get(json_object_get(all, "published"), "past"), &others))
        return true;
    was_ns = all ? past_predict(&older, &others, limit_ns, run->size) : past_predict(NULL, &older, limit_ns, run->size);
    is_ns = all ? past_predict(&newer, &others, limit_ns, run->size) : past_predict(NULL, &newer, limit_ns, run->size);
    return past_prediction_moved(was_ns, is_ns, limit_ns);
}

static void publish(json_t *doc, const json_t *all, const struct predict_run *run)
{
    const json_t *published = json_object_get(doc, "published"), *runs = json_object_get(doc, "past");
    int64_t values[PREDICT_RUNS];
    size_t len = last_of(runs, values);
    int64_t p50 = quantile(values, len, 50), p90 = quantile(values, len, 90);
    int64_t memory = quantile(values, last_of(json_object_get(doc, "memory"), values), 90);
    json_int_t version = json_integer_value(json_object_get(published, "version"));
    if (version && !prediction_differs(doc, all, run) &&
        !moved(json_integer_value(json_object_get(published, "p50_ms")), p50) &&
        !moved(json_integer_value(json_object_get(published, "p90_ms")), p90) &&
        !moved(json_integer_value(json_object_get(published, "memory")), memory))
        return;
    json_t *past = runs ? json_deep_copy(runs) : json_array();
    (void)json_object_set_new(doc, "published",
                              json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "version", version + 1, "runs",
                                        json_integer_value(json_object_get(doc, "runs")), "p50_ms", (json_int_t)p50,
                                        "p90_ms", (json_int_t)p90, "memory", (json_int_t)memory, "past", past));
}

static void publish_all(json_t *doc, const struct predict_run *run)
{
    const json_t *published = json_object_get(doc, "published"), *at = json_object_get(published, "at");
    json_int_t version = json_integer_value(json_object_get(published, "version"));
    char text[TIMESTAMP_MAX];
    int64_t at_ns = 0;
    bool rests = json_integer_value(json_object_get(doc, "runs")) > ALL_RUNS && at &&
                 timestamp_parse(at, &at_ns, NULL) == 0 && run->at_ns >= at_ns &&
                 run->at_ns - at_ns < (int64_t)ALL_REST_S * 1000 * MILLISECOND;
    if (version && (rests || !prediction_differs(doc, NULL, run)))
        return;
    (void)json_object_set_new(doc, "published",
                              json_pack("{s:I, s:I, s:s, s:o}", "version", version + 1, "runs",
                                        json_integer_value(json_object_get(doc, "runs")), "at",
                                        timestamp_text(run->at_ns, text), "past",
                                        json_deep_copy(json_object_get(doc, "past"))));
}

/* Sums up estimates and real run times, so that a mean over several documents can be computed. */
static void note_estimate(json_t *doc, const struct predict_run *run)
{
    json_t *said = json_object_get(doc, "estimates");
    if (run->estimate_ns <= 0)
        return;
    if (!said)
        (void)json_object_set_new(doc, "estimates",
                                  said = json_pack("{s:i, s:i, s:i}", "runs", 0, "said_ms", 0, "ran_ms", 0));
    const int64_t add[] = {1, run->estimate_ns / MILLISECOND, run->ran_ns / MILLISECOND};
    static const char *const names[] = {"runs", "said_ms", "ran_ms"};
    for (size_t i = 0; i < 3; i++) {
        json_int_t sum = json_integer_value(json_object_get(said, names[i]));
        if (!__builtin_add_overflow(sum, (json_int_t)add[i], &sum))
            (void)json_object_set_new(said, names[i], json_integer(sum));
    }
}

/* Opens the document in the change for editing, or a new one. NULL: there are too many documents. */
static json_t *open_doc(struct change *c, const char *id)
{
    size_t len;
    if (change_read(c, KIND_PREDICTION, id))
        return change_edit(c, KIND_PREDICTION, id);
    (void)state_list(c->state, KIND_PREDICTION, &len);
    if (len >= DOCUMENTS_MAX && strchr(id, '/'))
        return NULL;
    change_put(c, KIND_PREDICTION, id, json_object());
    return change_edit(c, KIND_PREDICTION, id);
}

/* Records the run. Returns how many runs there were before. */
static json_int_t note_run(json_t *doc, const struct predict_run *run, size_t most)
{
    char at[TIMESTAMP_MAX];
    json_int_t n = json_integer_value(json_object_get(doc, "runs"));
    (void)json_object_set_new(doc, "at", json_string(timestamp_text(run->at_ns, at)));
    if (run->beside)
        return n;
    (void)json_object_set_new(doc, "runs", json_integer(n + 1));
    list_push(doc, "past", past_run_write(run), most);
    return n;
}

/* Returns how many runs the document had before. */
static json_int_t learn_run(struct change *c, const char *id, const struct predict_run *run)
{
    bool named = strchr(id, '/');
    const json_t *all = change_read(c, KIND_PREDICTION, PREDICT_ALL);
    CLEANUP(json) json_t *none = json_object();
    json_t *doc = open_doc(c, id);
    if (!doc)
        return 0;
    json_int_t n = note_run(doc, run, named ? PREDICT_RUNS : PAST_RUNS_MAX);
    if (run->memory > 0)
        list_push(doc, "memory", json_integer(run->memory), PREDICT_RUNS);
    if (!run->beside)
        note_estimate(doc, run);
    if (json_array_size(json_object_get(doc, "past")) && (named || n + 1 >= OWNER_RUNS_MIN))
        publish(doc, all ? all : none, run);
    return n;
}

static void learn_all(struct change *c, const struct predict_run *run)
{
    json_t *doc = run->beside ? NULL : open_doc(c, PREDICT_ALL);
    if (!doc)
        return;
    (void)note_run(doc, run, PAST_RUNS_MAX);
    publish_all(doc, run);
}

void predict_learn(struct change *c, const struct predict_run *run)
{
    char id[OBJECT_KEY_MAX];
    if (!run->owner || !*run->owner || run->ran_ns < 0)
        return;
    bool named = run->name && *run->name;
    json_int_t n = named ? learn_run(c, predict_id(run->owner, run->name, id), run) : 0;
    if (named && !past_run_counts((uint64_t)n))
        return;
    (void)learn_run(c, run->owner, run);
    learn_all(c, run);
}

bool predict_needed(const struct state *s, const struct object *prediction, int64_t now_ns)
{
    char owner[OBJECT_KEY_MAX];
    int64_t at_ns = 0;
    (void)snprintf(owner, sizeof owner, "%.*s", (int)strcspn(prediction->id, "/"), prediction->id);
    CLEANUP(json) json_t *doc = object_doc(prediction);
    const json_t *at = json_object_get(doc, "at");
    bool of_somebody = strcmp(owner, PREDICT_CLASS) != 0 && strcmp(owner, PREDICT_ALL) != 0;
    if ((of_somebody && !state_find(s, KIND_USER, owner)) || !at || timestamp_parse(at, &at_ns, NULL) < 0)
        return false;
    return now_ns - at_ns < (int64_t)PREDICT_KEEP_S * 1000000000;
}
