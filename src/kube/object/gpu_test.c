/* gpu_test.c - GPU labels of nodes, and pods that request GPUs by model or memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "kube/object/gpu.h"
#include "kube/object/object_kit_test.h"

static void node(struct scene *s, const char *name, const char *labels)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(&yaml,
             "{metadata: {name: %s, labels: {%s}}, status: {allocatable: {cpu: 4, pods: 10, nvidia.com/gpu: 8}}}", name,
             labels);
    scene_put(s, CACHE_NODE, yaml.at);
}

static void pod(struct scene *s, const char *notes)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(
        &yaml,
        "{metadata: {name: p, namespace: default, creationTimestamp: 100, annotations: {%s}}, spec: {schedulerName: "
        "berth, containers: [{resources: {requests: {nvidia.com/gpu: 1}}}]}}",
        notes);
    scene_put(s, CACHE_POD, yaml.at);
}

static void models_and_memory(void **state)
{
    (void)state;
    static const struct {
        const char *notes, *says;
    } rows[] = {
        {"berth.dev/gpu-models: A100",                                    "p->a100"},
        {"berth.dev/gpu-models: a100",                                    "p->a100"},
        {"berth.dev/gpu-models: A100-SXM4",                               "p->a100"},
        {"berth.dev/gpu-models: 'A100 SXM4'",                             "p->a100"},
        {"berth.dev/gpu-models: NVIDIA-A100-SXM4-80GB",                   "p->a100"},
        {"berth.dev/gpu-models: A10",                                     "?p"     }, /* a word must match as a whole */
        {"berth.dev/gpu-models: A100-80GB",                               "?p"     },
        {"berth.dev/gpu-models: 'V100, H200'",                            "p->h200"},
        {"berth.dev/gpu-models: V100",                                    "?p"     },
        {"berth.dev/gpu-memory: 100Gi",                                   "p->h200"},
        {"berth.dev/gpu-memory: 143771Mi",                                "p->h200"},
        {"berth.dev/gpu-memory: 143772Mi",                                "?p"     },
        {"berth.dev/gpu-models: 'A100,H200', berth.dev/gpu-memory: 80Gi", "p->h200"}, /* 81559 MiB are less */
        {"berth.dev/gpu-models: A100, berth.dev/gpu-memory: 79Gi",        "p->a100"},
        {"berth.dev/gpu-models: A100, berth.dev/gpu-memory: 80Gi",        "?p"     },
 /* Berth's label takes precedence */
        {"berth.dev/gpu-models: T4",                                      "p->own" },
        {"berth.dev/gpu-models: 'L4'",                                    "?p"     },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        __attribute__((cleanup(scene_cleanup))) struct scene s;
        scene_begin(&s);
        node(&s, "a100", "nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, nvidia.com/gpu.memory: '81559'");
        node(&s, "h200", "berth.dev/gpu.model: NVIDIA-H200, berth.dev/gpu.memory: '143771', berth.dev/gpu.count: '8'");
        node(&s, "own", "berth.dev/gpu.model: T4, nvidia.com/gpu.product: L4, nvidia.com/gpu.memory: '100'");
        node(&s, "plain", "");
        pod(&s, rows[i].notes);
        const char *says = scene_says(&s);
        if (strcmp(says, rows[i].says) != 0)
            fail_msg("{%s}: '%s', not '%s'", rows[i].notes, says, rows[i].says);
    }
}

/* Invalid annotations keep the pod pending, with a message. */
static void invalid_annotations_keep_pod_pending(void **state)
{
    (void)state;
    static const struct {
        const char *notes, *why;
    } rows[] = {
        {"berth.dev/gpu-models: ', ,'",                               "names no model"            },
        {"berth.dev/gpu-memory: much",                                "is not an amount of memory"},
        {"berth.dev/gpu-memory: '-1'",                                "is not an amount of memory"},
        {"berth.dev/gpu-models: 'a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q'", "too many models"           },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct arena arena;
        struct kube_terms terms;
        struct kube_labels notes = {0};
        CLEANUP(str) struct str yaml = {0};
        const char *key;
        json_t *value;
        str_addf(&yaml, "{%s}", rows[i].notes);
        json_t *root = kit_parse(yaml.at);
        arena_init(&arena);
        json_object_foreach(root, key, value)
        {
            kube_push(&arena, &notes, ((struct berth_label){key, json_string_value(value)}));
        }
        const char *why = kube_gpu_terms(&arena, &notes, &terms);
        if (!why || !strstr(why, rows[i].why) || terms.len)
            fail_msg("{%s}: '%s'", rows[i].notes, why ? why : "");
        arena_done(&arena);
        json_decref(root);
        __attribute__((cleanup(scene_cleanup))) struct scene s;
        scene_begin(&s);
        node(&s, "n", "berth.dev/gpu.model: A100");
        pod(&s, rows[i].notes);
        assert_string_equal(scene_says(&s), "?p");
    }
}

/* Labels added later count from then on. */
static void gpus_labelled_later_are_used(void **state)
{
    (void)state;
    __attribute__((cleanup(scene_cleanup))) struct scene s;
    scene_begin(&s);
    node(&s, "n", "");
    pod(&s, "berth.dev/gpu-models: H200");
    assert_string_equal(scene_says(&s), "?p");
    node(&s, "n", "berth.dev/gpu.model: NVIDIA-H200");
    assert_string_equal(scene_says(&s), "p->n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(models_and_memory),
                                       cmocka_unit_test(invalid_annotations_keep_pod_pending),
                                       cmocka_unit_test(gpus_labelled_later_are_used)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
