/* occupancy.c - capacity and allocation of the cluster, in totals by domain. */
#include "control/explain/occupancy.h"

#include <string.h>

#include "base/vec.h"

static const char *const names[USES] = {"cpu", "memory", "gpu"};

struct domain_sum {
    const char *domain; /* "": nodes without a domain */
    struct occupancy_sum sum;
};
struct domain_sums {
    struct domain_sum *at;
    size_t len, cap;
};

double occupancy_units(size_t of, int64_t amount)
{
    static const double units[USES] = {1000, 1, BERTH_GPU_MILLI};
    return (double)amount / units[of];
}

/* A linear search suffices: domains are few. */
static struct occupancy_sum *sum_of(struct domain_sums *sums, const char *domain)
{
    for (size_t i = 0; i < sums->len; i++)
        if (strcmp(sums->at[i].domain, domain) == 0)
            return &sums->at[i].sum;
    struct domain_sum fresh = {.domain = domain};
    vec_push(sums, fresh);
    return &sums->at[sums->len - 1].sum;
}

static void count(struct state *s, const struct object *node, struct occupancy_sum *to)
{
    bool ready = node->node->state == BERTH_NODE_READY;
    to->nodes++;
    to->ready += ready;
    for (size_t i = 0; i < USES; i++) {
        struct berth_node_use use;
        if (!berth_node_use(state_cluster(s), node->id, names[i], &use))
            continue;
        to->use[i].there += ready ? use.there : 0;
        to->use[i].held += use.held;
    }
}

void occupancy_total(struct state *s, struct occupancy_sum *ret)
{
    size_t len;
    const struct object *const *nodes = state_list(s, KIND_NODE, &len);
    *ret = (struct occupancy_sum){0};
    for (size_t i = 0; i < len; i++)
        count(s, nodes[i], ret);
}

static json_t *sum_json(const struct occupancy_sum *sum)
{
    json_t *json = json_pack("{s:I, s:I}", "nodes", (json_int_t)sum->nodes, "ready", (json_int_t)sum->ready);
    for (size_t i = 0; i < USES; i++)
        (void)json_object_set_new(json, names[i],
                                  json_pack("{s:f, s:f}", "there", occupancy_units(i, sum->use[i].there), "held",
                                            occupancy_units(i, sum->use[i].held)));
    return json;
}

int occupancy_run(struct request *c)
{
    size_t len;
    const struct object *const *nodes = state_list(c->state, KIND_NODE, &len);
    struct occupancy_sum total;
    struct domain_sums sums = {0};
    occupancy_total(c->state, &total);
    for (size_t i = 0; i < len; i++)
        count(c->state, nodes[i], sum_of(&sums, nodes[i]->node->domain));
    json_t *domains = json_array();
    for (size_t i = 0; i < sums.len; i++) {
        json_t *one = sum_json(&sums.at[i].sum);
        (void)json_object_set_new(one, "domain", json_string(sums.at[i].domain));
        (void)json_array_append_new(domains, one);
    }
    vec_done(&sums);
    c->answer.body = json_pack("{s:o, s:o}", "total", sum_json(&total), "domains", domains);
    c->answer.revision = state_revision(c->state);
    return 0;
}
