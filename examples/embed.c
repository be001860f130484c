/* embed.c - plans a small cluster from a C program of your own.
 *
 *     cc embed.c $(pkg-config --cflags --libs berth) -o embed && ./embed
 */
#include <berth.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define GIB ((int64_t)1 << 30)

static struct berth_err err;

static void require(int rc)
{
    if (rc != 0) {
        fprintf(stderr, "embed: %s\n", err.text);
        exit(1);
    }
}

int main(void)
{
    struct berth_cluster *cluster = berth_cluster_new();

    struct berth_amount has[] = {
        {"cpu",    8000    },
        {"memory", 32 * GIB},
        {"pods",   110     }
    };
    struct berth_gpu gpus[] = {
        {"A100", 80 * GIB},
        {"A100", 80 * GIB}
    };
    struct berth_node plain = {.id = "n1", .zone = "east", .allocatable = has, .allocatable_len = 3};
    require(berth_node_put(cluster, &plain, &err));
    struct berth_node with_gpus = plain;
    with_gpus.id = "g1";
    with_gpus.gpus = gpus;
    with_gpus.gpus_len = 2;
    require(berth_node_put(cluster, &with_gpus, &err));

    struct berth_amount needs[] = {
        {"cpu",    1500   },
        {"memory", 4 * GIB}
    };
    struct berth_shape shape = {.requests = needs, .requests_len = 2};
    struct berth_workload web = {.id = "web", .replicas = 3, .priority = 10, .shape = shape};
    require(berth_workload_put(cluster, &web, &err));
    struct berth_workload train = {.id = "train", .kind = BERTH_JOB, .replicas = 3, .shape = shape};
    train.shape.gpu.count = 1;
    require(berth_workload_put(cluster, &train, &err));

    struct berth_snapshot *snapshot = berth_freeze(cluster, 0, 1);
    struct berth_policy policy = {0};
    struct berth_plan *plan;
    require(berth_plan_make(snapshot, &policy, &plan, &err));
    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        printf("%s %s/%" PRIu32 " on %s\n", berth_op_name(a.op), a.workload, a.ordinal, a.node);
    }
    for (size_t i = 0; i < berth_plan_pendings(plan); i++) {
        struct berth_pending p = berth_plan_pending(plan, i);
        printf("%zu of %s pending\n", p.ordinals_len, p.workload);
        for (size_t j = 0; j < p.reasons_len; j++)
            printf("  %s\n", p.reasons[j].text);
        struct berth_advice advice;
        if (berth_plan_advise(plan, &policy, i, 8, &advice, 1))
            printf("  what would help: %s\n", advice.text);
    }
    berth_plan_free(plan);
    berth_snapshot_free(snapshot);
    berth_cluster_free(cluster);
    return 0;
}
