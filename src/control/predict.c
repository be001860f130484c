#include "control/predict.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "wire/api.h"
#include "wire/document.h"
#include "wire/moment.h"

enum {
    MILLISECOND = 1000000,
    DOCUMENTS_MAX = 20000, /* beyond, only what is known already goes on, and owners as a whole */
    OWNER_FIRST = 4,       /* runs of a name that count for its owner as a whole; then every so many: */
    OWNER_EVERY = 8,       /* so one large array does not outvote all else */
    OWNER_RUNS_MIN = 4,    /* before an owner's runs say anything of another name */
};

/* ---- names --------------------------------------------------------------------------------------------------------- */

/* Without the number at its end, "sweep-17" is "sweep"; one that is nothing but a number stays. */
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

/* Keys of the store hold few characters, and people write any: what else there is becomes '_', with a hash behind it. */
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

/* ---- what is published --------------------------------------------------------------------------------------------- */

int predict_read(const json_t *doc, struct prediction_view *ret, struct berth_err *err)
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
        return err_set(err, EBADMSG, "published: longer than any time");
    *ret = (struct prediction_view){.slower = (int32_t)(got[4] < 1000000 ? got[4] : 1000000),
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

json_t *predict_show(const struct state *s, const char *owner, const char *name)
{
    const struct object *o = best(s, owner, name);
    if (!o)
        return NULL;
    const struct prediction_view *p = o->prediction;
    json_t *shown = json_pack("{s:f, s:f, s:I, s:s}", "seconds_p50", (double)p->p50_ns / 1e9, "seconds_p90",
                              (double)p->p90_ns / 1e9, "version", (json_int_t)p->version, "of", o->id);
    if (p->memory)
        (void)json_object_set_new(shown, "memory", json_integer(p->memory));
    return shown;
}

/* ---- learning ------------------------------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The smallest value that so many percent do not exceed; 0: there are none. */
static int64_t quantile(const json_t *list, unsigned percent)
{
    int64_t sorted[PREDICT_RUNS] = {0};
    size_t len = json_array_size(list) < PREDICT_RUNS ? json_array_size(list) : PREDICT_RUNS;
    for (size_t i = 0; i < len; i++)
        sorted[i] = json_integer_value(json_array_get(list, i));
    qsort(sorted, len, sizeof *sorted, compare);
    return len ? sorted[(len * percent + 99) / 100 - 1] : 0;
}

static void list_push(json_t *doc, const char *key, int64_t value)
{
    json_t *list = json_object_get(doc, key);
    if (!list)
        (void)json_object_set_new(doc, key, list = json_array());
    (void)json_array_append_new(list, json_integer(value));
    while (json_array_size(list) > PREDICT_RUNS)
        (void)json_array_remove(list, 0);
}

static bool moved(int64_t was, int64_t is)
{
    int64_t apart = is > was ? is - was : was - is;
    return apart > was / 4;
}

static void publish(json_t *doc)
{
    const json_t *runs = json_object_get(doc, "runs_ms"), *published = json_object_get(doc, "published");
    int64_t p50 = quantile(runs, 50), p90 = quantile(runs, 90), memory = quantile(json_object_get(doc, "memory"), 90);
    json_int_t version = json_integer_value(json_object_get(published, "version"));
    if (version && !moved(json_integer_value(json_object_get(published, "p50_ms")), p50) &&
        !moved(json_integer_value(json_object_get(published, "p90_ms")), p90) &&
        !moved(json_integer_value(json_object_get(published, "memory")), memory))
        return;
    (void)json_object_set_new(doc, "published",
                              json_pack("{s:I, s:I, s:I, s:I}", "version", version + 1, "p50_ms", (json_int_t)p50,
                                        "p90_ms", (json_int_t)p90, "memory", (json_int_t)memory));
}

/* What people said against what came out: sums, so that a mean can be had of any of them together. */
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

/* The document as the change leaves it, to be altered; a new one if there is none. NULL: there are too many. */
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

/* Returns how many runs it had before. */
static json_int_t learn(struct change *c, const char *id, const struct predict_run *run)
{
    char at[TIMESTAMP_MAX];
    json_t *doc = open_doc(c, id);
    if (!doc)
        return 0;
    json_int_t n = json_integer_value(json_object_get(doc, "runs"));
    (void)json_object_set_new(doc, "runs", json_integer(n + 1));
    (void)json_object_set_new(doc, "at", json_string(timestamp_text(run->at_ns, at)));
    list_push(doc, "runs_ms", run->ran_ns / MILLISECOND);
    if (run->memory > 0)
        list_push(doc, "memory", run->memory);
    note_estimate(doc, run);
    if (strchr(id, '/') || n + 1 >= OWNER_RUNS_MIN)
        publish(doc);
    return n;
}

void predict_learn(struct change *c, const struct predict_run *run)
{
    char id[OBJECT_KEY_MAX];
    if (!run->owner || !*run->owner || run->ran_ns < 0)
        return;
    bool named = run->name && *run->name;
    json_int_t n = named ? learn(c, predict_id(run->owner, run->name, id), run) : 0;
    if (!named || n < OWNER_FIRST || n % OWNER_EVERY == 0)
        (void)learn(c, run->owner, run);
}

bool predict_needed(const struct state *s, const struct object *prediction, int64_t now_ns)
{
    char owner[OBJECT_KEY_MAX];
    int64_t at_ns = 0;
    (void)snprintf(owner, sizeof owner, "%.*s", (int)strcspn(prediction->id, "/"), prediction->id);
    CLEANUP(json) json_t *doc = object_doc(prediction);
    const json_t *at = json_object_get(doc, "at");
    if ((!state_find(s, KIND_USER, owner) && strcmp(owner, PREDICT_CLASS) != 0) || !at ||
        timestamp_parse(at, &at_ns, NULL) < 0)
        return false;
    return now_ns - at_ns < (int64_t)PREDICT_KEEP_S * 1000000000;
}
