/* predict_class.c - interference between job classes on a node: run times beside other jobs against run times alone. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "control/job/predict.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

enum {
    MILLION = 1000000,
    CHECKED_MAX = 256, /* checked instances of a node, the latest ones */
    NAME_RUNS_MIN = 4, /* minimum of runs of the name: otherwise there is nothing to compare with */
    RATIO_MIN = 100,   /* bounds, in thousandths of the prediction: beyond them the prediction was wrong */
    RATIO_MAX = 10000,
    MOVED_MIN = MILLION / 20, /* minimum change before a value is published again */
};

static const char *class_id(const char *class_name, char buf[static OBJECT_KEY_MAX])
{
    return predict_key(PREDICT_CLASS, class_name, strlen(class_name), buf);
}

int32_t predict_interference(const struct state *s, const char *class_name)
{
    char id[OBJECT_KEY_MAX];
    const struct object *o =
        class_name && *class_name ? state_find(s, KIND_PREDICTION, class_id(class_name, id)) : NULL;
    return o ? o->prediction->slower : 0;
}

/* ---- neighbours ------------------------------------------------------------------------------------------------- */

static bool is_neighbour(const struct object *other, const struct object *instance, int64_t half_ns)
{
    const struct instance_view *v = other->instance;
    return other != instance && strcmp(v->workload, instance->instance->workload) != 0 && v->started_ns &&
           v->started_ns <= half_ns && v->state != BERTH_ENDED;
}

static const char *class_of(const struct state *s, const struct object *instance, struct arena *arena)
{
    const struct object *work = state_find_work(s, instance->instance->workload);
    CLEANUP(json) json_t *doc = work ? object_doc(work) : NULL;
    const char *name = json_string_value(json_object_get(doc, "class"));
    return arena_strdup(arena, name && *name ? name : work ? kinds[work->kind].name : "other");
}

json_t *predict_neighbour_classes(const struct state *s, const struct object *instance, int64_t start_ns,
                                  int64_t end_ns)
{
    struct arena arena;
    json_t *classes = json_array();
    const struct object *node = state_find(s, KIND_NODE, instance->instance->node);
    int64_t half_ns = start_ns + (end_ns - start_ns) / 2;
    arena_init(&arena);
    for (size_t i = node ? node->node->instances_len : 0, seen = 0;
         i-- > 0 && seen < CHECKED_MAX && json_array_size(classes) < NEIGHBOURS_MAX; seen++) {
        const struct object *other = node->node->instances[i];
        if (!is_neighbour(other, instance, half_ns))
            continue;
        const char *name = class_of(s, other, &arena);
        bool known = false;
        for (size_t k = 0; k < json_array_size(classes); k++)
            known = known || strcmp(json_string_value(json_array_get(classes, k)), name) == 0;
        if (!known)
            (void)json_array_append_new(classes, json_string(name));
    }
    arena_done(&arena);
    return classes;
}

/* ---- learning --------------------------------------------------------------------------------------------------- */

static void mean_add(json_t *in, const char *key, json_int_t ratio)
{
    json_t *mean = json_object_get(in, key);
    if (!mean)
        (void)json_object_set_new(in, key, mean = json_pack("{s:i, s:i}", "runs", 0, "sum", 0));
    (void)json_object_set_new(mean, "runs", json_integer(json_integer_value(json_object_get(mean, "runs")) + 1));
    (void)json_object_set_new(mean, "sum", json_integer(json_integer_value(json_object_get(mean, "sum")) + ratio));
}

/* Returns thousandths; 0: too few runs. */
static json_int_t mean_of(const json_t *mean)
{
    json_int_t runs = json_integer_value(json_object_get(mean, "runs"));
    return runs >= CLASS_RUNS_MIN ? json_integer_value(json_object_get(mean, "sum")) / runs : 0;
}

static void publish(json_t *doc)
{
    const json_t *published = json_object_get(doc, "published");
    json_int_t alone = mean_of(json_object_get(doc, "alone")), others = mean_of(json_object_get(doc, "others"));
    json_int_t was = json_integer_value(json_object_get(published, "slower"));
    if (!alone || !others)
        return;
    json_int_t slower = others > alone ? (others - alone) * MILLION / alone : 0;
    slower = slower < MILLION ? slower : MILLION;
    if (published && llabs(slower - was) < MOVED_MIN)
        return;
    (void)json_object_set_new(doc, "published",
                              json_pack("{s:I, s:I}", "version",
                                        json_integer_value(json_object_get(published, "version")) + 1, "slower",
                                        slower));
}

/* Returns the run time in thousandths of the prediction for its name; 0: no prediction. */
static json_int_t ratio_of(struct change *c, const struct predict_run *run)
{
    char id[OBJECT_KEY_MAX];
    const json_t *doc =
        run->name && *run->name ? change_read(c, KIND_PREDICTION, predict_id(run->owner, run->name, id)) : NULL;
    json_int_t p50_ms = json_integer_value(json_object_get(json_object_get(doc, "published"), "p50_ms"));
    if (json_integer_value(json_object_get(doc, "runs")) < NAME_RUNS_MIN || p50_ms <= 0)
        return 0;
    json_int_t ratio = run->ran_ns / 1000 / p50_ms;
    return ratio < RATIO_MIN ? RATIO_MIN : ratio > RATIO_MAX ? RATIO_MAX : ratio;
}

/* Called only for a new class. */
static bool room_for_class(const struct state *s)
{
    size_t len, n = 0;
    const struct object *const *list = state_list(s, KIND_PREDICTION, &len);
    for (size_t i = 0; i < len && n < CLASSES_MAX; i++)
        n += strncmp(list[i]->id, PREDICT_CLASS "/", sizeof PREDICT_CLASS) == 0;
    return n < CLASSES_MAX;
}

void predict_learn_class(struct change *c, const struct predict_run *run, const char *class_name, const json_t *beside)
{
    char id[OBJECT_KEY_MAX], at[TIMESTAMP_MAX];
    size_t i;
    json_t *other;
    json_int_t ratio = ratio_of(c, run);
    if (!ratio || !json_is_array(beside))
        return;
    (void)class_id(class_name, id);
    if (!change_read(c, KIND_PREDICTION, id)) {
        if (!room_for_class(c->state))
            return;
        change_put(c, KIND_PREDICTION, id, json_object());
    }
    json_t *doc = change_edit(c, KIND_PREDICTION, id);
    (void)json_object_set_new(doc, "at", json_string(timestamp_text(run->at_ns, at)));
    mean_add(doc, json_array_size(beside) ? "others" : "alone", ratio);
    json_t *pairs = json_object_get(doc, "beside");
    if (!pairs)
        (void)json_object_set_new(doc, "beside", pairs = json_object());
    json_array_foreach(beside, i, other)
    {
        const char *name = json_string_value(other);
        if (name && (json_object_get(pairs, name) || json_object_size(pairs) < CLASSES_MAX / 8))
            mean_add(pairs, name, ratio);
    }
    publish(doc);
}
