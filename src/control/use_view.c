/* use_view.c - what the cluster has and what is held of it, in sums by domain. */
#include "control/use_view.h"

#include <string.h>

#include "base/vec.h"

enum { CPU, MEMORY, GPU, SUMS };
static const char *const names[SUMS] = {"cpu", "memory", "gpu"};
static const double units[SUMS] = {1000, 1, BERTH_GPU_MILLI};

struct sum {
    const char *domain; /* "": of nodes in none */
    size_t nodes, ready;
    struct berth_node_use use[SUMS];
};
struct sums {
    struct sum *at;
    size_t len, cap;
};

/* Domains are few. */
static struct sum *sum_of(struct sums *sums, const char *domain)
{
    for (size_t i = 0; i < sums->len; i++)
        if (strcmp(sums->at[i].domain, domain) == 0)
            return &sums->at[i];
    struct sum fresh = {.domain = domain};
    vec_push(sums, fresh);
    return &sums->at[sums->len - 1];
}

/* Of a node that takes no work nothing is there, but what it still holds is. */
static void count(struct call *c, const struct object *node, struct sum *to)
{
    bool ready = node->node->state == BERTH_NODE_READY;
    to->nodes++;
    to->ready += ready;
    for (size_t i = 0; i < SUMS; i++) {
        struct berth_node_use use;
        if (!berth_node_use(state_cluster(c->state), node->id, names[i], &use))
            continue;
        to->use[i].there += ready ? use.there : 0;
        to->use[i].held += use.held;
    }
}

static json_t *sum_json(const struct sum *sum)
{
    json_t *json = json_pack("{s:I, s:I}", "nodes", (json_int_t)sum->nodes, "ready", (json_int_t)sum->ready);
    for (size_t i = 0; i < SUMS; i++)
        (void)json_object_set_new(json, names[i],
                                  json_pack("{s:f, s:f}", "there", (double)sum->use[i].there / units[i], "held",
                                            (double)sum->use[i].held / units[i]));
    return json;
}

int use_run(struct call *c)
{
    size_t len;
    const struct object *const *nodes = state_list(c->state, KIND_NODE, &len);
    struct sum total = {0};
    struct sums sums = {0};
    for (size_t i = 0; i < len; i++) {
        count(c, nodes[i], &total);
        count(c, nodes[i], sum_of(&sums, nodes[i]->node->domain));
    }
    json_t *domains = json_array();
    for (size_t i = 0; i < sums.len; i++) {
        json_t *one = sum_json(&sums.at[i]);
        (void)json_object_set_new(one, "domain", json_string(sums.at[i].domain));
        (void)json_array_append_new(domains, one);
    }
    vec_done(&sums);
    c->answer.body = json_pack("{s:o, s:o}", "total", sum_json(&total), "domains", domains);
    c->answer.revision = state_revision(c->state);
    return 0;
}
