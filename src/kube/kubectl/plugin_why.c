#include "kube/kubectl/plugin_why.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "core/score/score.h"
#include "kube/kubectl/plugin_table.h"
#include "wire/text/quantity.h"

#define SECOND_NS INT64_C(1000000000)
enum { NEAREST = 3, HOLDERS = 5, CANDIDATES = 3 };

/* ---- numbers as text -------------------------------------------------------------------------------------------- */

const char *plugin_age(struct arena *arena, int64_t span_ns)
{
    static const struct {
        int64_t seconds;
        char unit;
    } units[] = {
        {86400, 'd'},
        {3600,  'h'},
        {60,    'm'},
        {1,     's'},
    };
    int64_t seconds = span_ns > 0 ? span_ns / SECOND_NS : 0;
    size_t i = 0;
    while (units[i].seconds > 1 && seconds < 2 * units[i].seconds)
        i++;
    return arena_fmt(arena, "%" PRId64 "%c", seconds / units[i].seconds, units[i].unit);
}

void plugin_amounts(const struct berth_amount *amounts, size_t len, struct str *to)
{
    char buf[QUANTITY_TEXT_MAX];
    size_t told = 0;
    for (size_t i = 0; i < len; i++)
        if (amounts[i].amount && strcmp(amounts[i].resource, "pods") != 0)
            str_addf(to, "%s%s %s", told++ ? ", " : "", quantity_print(amounts[i].resource, amounts[i].amount, buf),
                     amounts[i].resource);
}

static void heading(struct str *to, const char *text)
{
    str_addf(to, "\n%s\n", text);
}

/* ---- a placed pod ----------------------------------------------------------------------------------------------- */

/* Formats a score in hundredths of the maximum of a score of weight 1. */
static const char *points(struct arena *a, int32_t score)
{
    return arena_fmt(a, "%.1f", (double)score * 100 / SCORE_ONE);
}

struct candidate_node {
    const char *node;
    int32_t score;
};

/* Returns the points that each single score gives the pod on the node, each from a plan of its own. */
static const char **points_by_score(struct plugin_view *v, const struct berth_workload *w, const char *node)
{
    const struct berth_profile *profile = kube_policy_profile(&v->policy, w->shape.profile);
    struct berth_workload held = *w;
    const char **parts = ARENA_ARRAY(&v->arena, const char *, profile->scores_len);
    held.shape.node = node;
    for (size_t i = 0; i < profile->scores_len; i++) {
        struct berth_profile alone = *profile;
        alone.scores = &profile->scores[i];
        alone.scores_len = 1;
        struct plugin_trial t = plugin_run_trial(v, &held, &alone);
        parts[i] = t.end == PLUGIN_PLACED ? points(&v->arena, t.score) : "-";
    }
    return parts;
}

/* Finds the best nodes for the pod now, and adds its present node. */
static size_t candidates_find(struct plugin_view *v, const struct berth_workload *w, const char *node,
                              struct candidate_node ret[static CANDIDATES + 1])
{
    const char *passed[CANDIDATES];
    size_t len = 0;
    bool here = false;
    while (len < CANDIDATES) {
        struct berth_workload other = len ? plugin_exclude_nodes(v, w, passed, len) : *w;
        struct plugin_trial t = plugin_run_trial(v, &other, NULL);
        if (t.end != PLUGIN_PLACED)
            break;
        passed[len] = t.node;
        here |= strcmp(t.node, node) == 0;
        ret[len++] = (struct candidate_node){t.node, t.score};
    }
    if (here)
        return len;
    struct berth_workload held = *w;
    held.shape.node = node;
    struct plugin_trial t = plugin_run_trial(v, &held, NULL);
    if (t.end == PLUGIN_PLACED)
        ret[len++] = (struct candidate_node){arena_strdup(&v->arena, node), t.score};
    return len;
}

/* Scores that are 0 for all nodes are left out. */
static void candidates_print(struct plugin_view *v, const struct berth_workload *w, const char *node,
                             const struct candidate_node *rivals, size_t len, struct str *to)
{
    struct plugin_table table = {0};
    const struct berth_profile *profile = kube_policy_profile(&v->policy, w->shape.profile);
    const char **parts[CANDIDATES + 1];
    bool *told = ARENA_ARRAY(&v->arena, bool, profile->scores_len);
    for (size_t r = 0; r < len; r++) {
        parts[r] = points_by_score(v, w, rivals[r].node);
        for (size_t i = 0; i < profile->scores_len; i++)
            told[i] |= strcmp(parts[r][i], "0.0") != 0;
    }
    plugin_cell(&table, "  NODE");
    plugin_cell(&table, "SCORE");
    for (size_t i = 0; i < profile->scores_len; i++)
        if (told[i])
            plugin_cell(&table, "%s", profile->scores[i].score);
    plugin_row(&table);
    for (size_t r = 0; r < len; r++) {
        plugin_cell(&table, "  %s%s", rivals[r].node, strcmp(rivals[r].node, node) == 0 ? " (here)" : "");
        plugin_cell(&table, "%s", points(&v->arena, rivals[r].score));
        for (size_t i = 0; i < profile->scores_len; i++)
            if (told[i])
                plugin_cell(&table, "%s", parts[r][i]);
        plugin_row(&table);
    }
    plugin_table_print(&table, true, to);
    str_addf(to, "  Profile '%s'; a score of weight 1 gives at most 100 points.\n", profile->name);
}

void plugin_why_placed(struct plugin_view *v, const struct cache_workload *pod, struct str *to)
{
    struct cache_demand demand;
    struct candidate_node rivals[CANDIDATES + 1];
    plugin_isolate(v, pod->instance);
    heading(to, "Why this node");
    if (pod->stopping) {
        str_add(to, "  The pod is terminating; no placement is planned for it.\n");
        return;
    }
    if (!cache_demand(v->cache, pod->workload, CACHE_RELAX_NOTHING, &demand) || demand.why) {
        str_add(to,
                "  The placement cannot be explained: the pod's requests differ from those that it was placed with.\n");
        return;
    }
    demand.workload.never_preempts = true;
    /* above the other pending tasks of its job, as it has no node in this cluster now */
    demand.workload.priority = INT32_MAX;
    demand.workload.gang = NULL;
    size_t len = candidates_find(v, &demand.workload, pod->node, rivals);
    bool known = false;
    for (size_t i = 0; i < len; i++)
        known |= strcmp(rivals[i].node, pod->node) == 0;
    if (len && strcmp(rivals[0].node, pod->node) == 0)
        str_addf(to, "  If the pod were placed now, %s would be %s:\n", pod->node,
                 len == 1 ? "the only feasible node" : "the best feasible node");
    else if (len && known)
        str_addf(
            to,
            "  If the pod were placed now, it would go to %s instead; the cluster has changed since it was placed:\n",
            rivals[0].node);
    else if (len)
        str_addf(to,
                 "  If the pod were placed now, %s would not be feasible and it would go to %s; placed pods keep their "
                 "node:\n",
                 pod->node, rivals[0].node);
    else
        str_add(to, "  If the pod were placed now, no node would be feasible; placed pods keep their node.\n");
    if (len)
        candidates_print(v, &demand.workload, pod->node, rivals, len, to);
}

/* ---- a pending pod ---------------------------------------------------------------------------------------------- */

static void position_print(struct plugin_view *v, size_t at, struct str *to)
{
    struct berth_plan *plan = v->choice.plan;
    struct berth_queue_position s = berth_plan_queue_position(plan, at);
    str_addf(to, "Position %" PRIu32 " of %zu pending workloads", s.position, berth_plan_pendings(plan));
    if (s.queue && *s.queue)
        str_addf(to, "; queue: %s, ordered by %s", s.queue, s.ranking);
    str_add(to, ".\n");
    if (s.start_ns)
        str_addf(to, "Reserved node: %s. Estimated start: in %s, when the running pods there have ended.\n", s.node,
                 plugin_age(&v->arena, s.start_ns - v->now_ns));
}

static void reasons_print(struct plugin_view *v, size_t at, struct str *to)
{
    struct berth_pending p = berth_plan_pending(v->choice.plan, at);
    heading(to, "Reasons");
    for (size_t i = 0; i < p.reasons_len; i++) {
        const struct berth_reason *r = &p.reasons[i];
        str_addf(to, "  - %s", r->text);
        if (r->only && r->only != r->nodes)
            str_addf(to, " (for %" PRIu64 " of them this is the only reason)", r->only);
        str_add(to, "\n");
    }
}

struct resource_holders {
    struct plugin_view *v;
    const char *resource;
    VEC(struct cache_workload) at;
};

static int64_t amount_of(const struct berth_amount *amounts, size_t len, const char *resource)
{
    for (size_t i = 0; i < len; i++)
        if (strcmp(amounts[i].resource, resource) == 0)
            return amounts[i].amount;
    return 0;
}

static void holder_add(void *ctx, const struct cache_workload *holder)
{
    struct resource_holders *h = ctx;
    if (amount_of(holder->requests, holder->requests_len, h->resource))
        vec_push(&h->at, *holder);
}

/* Orders by priority, lowest first (preemption candidates), then by name. */
static int by_priority(const void *a, const void *b)
{
    const struct cache_workload *x = a, *y = b;
    return x->priority != y->priority ? (x->priority > y->priority) - (x->priority < y->priority)
                                      : strcmp(x->workload, y->workload);
}

/* Prints the pods that hold the resources the node lacks. */
static void holders_print(struct plugin_view *v, const char *node, const struct berth_amount *need, struct str *to)
{
    struct resource_holders h = {.v = v, .resource = need->resource};
    struct berth_node_use use;
    char held[QUANTITY_TEXT_MAX], there[QUANTITY_TEXT_MAX];
    if (!berth_node_use(v->cluster, node, need->resource, &use) || use.there - use.held >= need->amount)
        return;
    cache_workloads_on_node(v->cache, node, holder_add, &h);
    if (h.at.len)
        qsort(h.at.at, h.at.len, sizeof *h.at.at, by_priority);
    str_addf(to, "  %s of %s: %s of %s allocated", need->resource, node, quantity_print(need->resource, use.held, held),
             quantity_print(need->resource, use.there, there));
    for (size_t i = 0; i < h.at.len && i < HOLDERS; i++)
        str_addf(to, "%s %s/%s (%s, priority %" PRId32 "%s)", i ? "," : ", to", h.at.at[i].namespace, h.at.at[i].name,
                 quantity_print(need->resource, amount_of(h.at.at[i].requests, h.at.at[i].requests_len, need->resource),
                                held),
                 h.at.at[i].priority, h.at.at[i].stopping ? ", terminating" : "");
    if (h.at.len > HOLDERS)
        str_addf(to, " and %zu more", h.at.len - HOLDERS);
    str_add(to, ".\n");
    vec_done(&h.at);
}

static void nearest_print(struct plugin_view *v, const struct cache_workload *pod, size_t at, struct str *to)
{
    struct berth_near_miss misses[NEAREST];
    CLEANUP(str) struct str held = {0};
    size_t len = berth_plan_nearest(v->choice.plan, at, misses, NEAREST);
    if (len)
        heading(to, "Nearest nodes");
    for (size_t i = 0; i < len; i++) {
        str_addf(to, "  - %s %s\n", misses[i].node, misses[i].text);
        for (size_t k = 0; k < pod->requests_len; k++)
            holders_print(v, misses[i].node, &pod->requests[k], &held);
    }
    if (held.len) {
        heading(to, "Blocked by (lowest priority first)");
        str_add(to, held.at);
    }
}

static void stops_print(struct plugin_view *v, const uint64_t *stops, size_t len, int32_t *ret_priority, struct str *to)
{
    size_t told = 0;
    for (size_t i = 0; i < len; i++) {
        struct cache_workload h;
        if (!cache_workload_by_instance(v->cache, stops[i], &h))
            continue;
        if (told < HOLDERS)
            str_addf(to, "%s%s/%s (priority %" PRId32 ")", told ? ", " : "", h.namespace, h.name, h.priority);
        told++;
        if (h.priority > *ret_priority)
            *ret_priority = h.priority;
    }
    if (told > HOLDERS)
        str_addf(to, " and %zu more", told - HOLDERS);
}

/* Prints which pods would be preempted if the pod had a higher priority. */
static void preemption_print(struct plugin_view *v, const struct berth_workload *w, struct str *to)
{
    struct berth_workload high = *w;
    CLEANUP(str) struct str victims_text = {0};
    int32_t priority = INT32_MIN;
    high.priority = INT32_MAX;
    high.never_preempts = false;
    struct plugin_trial t = plugin_run_trial(v, &high, NULL);
    stops_print(v, t.stops, t.stops_len, &priority, &victims_text);
    heading(to, "Preemption");
    if (t.end == PLUGIN_PREEMPTS && victims_text.len && w->never_preempts && priority < w->priority)
        str_addf(to, "  Stopping %s would make room on %s, but the preemptionPolicy of the pending pod is Never.\n",
                 victims_text.at, t.node);
    else if (t.end == PLUGIN_PREEMPTS && victims_text.len)
        str_addf(to,
                 "  Its priority %" PRId32 " is too low to preempt other pods. With a priority above %" PRId32
                 ", it would get room on %s by preempting %s.\n",
                 w->priority, priority, t.node, victims_text.at);
    else if (t.end == PLUGIN_PLACED)
        str_addf(to,
                 "  Not needed: with a higher priority than the pods ahead of it in the queue, it would go to %s.\n",
                 t.node);
    else
        str_add(to, "  Preemption would not help on any node.\n");
    (void)plugin_run_trial(v, w, NULL);
}

/* ---- advice ----------------------------------------------------------------------------------------------------- */

/* Returns the workload with one resource, or all (NULL), reduced to part/parts. */
static struct berth_workload requests_reduce(struct plugin_view *v, const struct berth_workload *w,
                                             const char *resource, int64_t part, int64_t parts)
{
    struct berth_workload other = *w;
    struct berth_amount *amounts = ARENA_ARRAY(&v->arena, struct berth_amount, w->shape.requests_len);
    size_t len = 0;
    for (size_t i = 0; i < w->shape.requests_len; i++) {
        struct berth_amount a = w->shape.requests[i];
        bool mine = resource ? strcmp(a.resource, resource) == 0 : strcmp(a.resource, "pods") != 0;
        if (mine)
            a.amount = (int64_t)((__int128)a.amount * part / parts);
        if (a.amount)
            amounts[len++] = a;
    }
    other.shape.requests = amounts;
    other.shape.requests_len = len;
    return other;
}

/* Returns into how many parts an amount is divided, so that each step is a round number. */
static int64_t parts_of(const struct berth_amount *a)
{
    const int64_t mib = INT64_C(1) << 20;
    int64_t step = strcmp(a->resource, "cpu") == 0 ? 50
                   : a->amount >= 128 * mib        ? 64 * mib
                   : a->amount >= mib              ? mib
                                                   : 1;
    return a->amount > step ? a->amount / step : a->amount;
}

/* Finds the largest amount that would fit now; adds a line if there is any. */
static bool reduction_print(struct plugin_view *v, const struct berth_workload *w, const struct berth_amount *of,
                            struct str *to)
{
    enum { PARTS_OF_ALL = 16 };
    int64_t parts = of ? parts_of(of) : PARTS_OF_ALL, low = -1, high = parts;
    const char *resource = of ? of->resource : NULL, *node = "";
    char less[QUANTITY_TEXT_MAX], asked[QUANTITY_TEXT_MAX];
    while (high - low > 1) { /* with `low` parts the pod fits, with `high` it does not */
        int64_t middle = low < 0 ? 0 : low + (high - low) / 2;
        struct berth_workload other = requests_reduce(v, w, resource, middle, parts);
        struct plugin_trial t = plugin_run_trial(v, &other, NULL);
        if (t.end == PLUGIN_PLACED) {
            low = middle;
            node = t.node;
        } else {
            high = middle;
        }
    }
    if (low < 0 || (!of && low == 0))
        return false;
    if (of && low == 0) {
        str_addf(to, "  - without a request for %s: on %s\n", of->resource, node);
    } else if (of) {
        str_addf(to, "  - with %s %s instead of %s: on %s\n",
                 quantity_print(of->resource, (int64_t)((__int128)of->amount * low / parts), less), of->resource,
                 quantity_print(of->resource, of->amount, asked), node);
    } else {
        struct berth_workload other = requests_reduce(v, w, NULL, low, parts);
        str_add(to, "  - with lower requests for all resources, ");
        plugin_amounts(other.shape.requests, other.shape.requests_len, to);
        str_addf(to, ": on %s\n", node);
    }
    return true;
}

static void changes_print(struct plugin_view *v, const struct berth_workload *w, struct str *to)
{
    static const struct {
        enum cache_relaxation but;
        const char *text;
    } rows[] = {
        {CACHE_RELAX_NODE_LABELS,  "without its node selector and required node affinity"},
        {CACHE_RELAX_TAINTS,       "with a toleration for all taints"                    },
        {CACHE_RELAX_POD_AFFINITY, "without its required pod affinity and anti-affinity" },
        {CACHE_RELAX_SPREAD,       "without its required topology spread"                },
        {CACHE_RELAX_PORTS,        "without its host ports"                              },
    };
    CLEANUP(str) struct str found = {0};
    bool cuts = false;
    for (size_t i = 0; i < w->shape.requests_len; i++)
        if (strcmp(w->shape.requests[i].resource, "pods") != 0)
            cuts |= reduction_print(v, w, &w->shape.requests[i], &found);
    if (!cuts && w->shape.requests_len > 2)
        (void)reduction_print(v, w, NULL, &found);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cache_demand demand;
        if (!cache_demand(v->cache, w->id, rows[i].but, &demand) || !demand.differs || demand.why)
            continue;
        struct plugin_trial t = plugin_run_trial(v, &demand.workload, NULL);
        if (t.end == PLUGIN_PLACED)
            str_addf(&found, "  - %s: on %s\n", rows[i].text, t.node);
    }
    (void)plugin_run_trial(v, w, NULL);
    heading(to, "Ways to start now");
    str_add(to, found.len
                    ? found.at
                    : "  None of the changes that were tried would help: lower requests, other nodes, tolerations, "
                      "pod affinity, topology spread and host ports.\n");
}

/* ---- the whole explanation -------------------------------------------------------------------------------------- */

static void planned_print(struct plugin_view *v, const struct berth_action *a, struct str *to)
{
    int32_t priority = INT32_MIN;
    if (a->op == BERTH_PLACE) {
        str_addf(to, "The plan places it on %s now. If it stays pending, check that berth-kube is running.\n", a->node);
        return;
    }
    str_addf(to, "It will be placed on %s after these pods have stopped: ", a->node);
    stops_print(v, a->waits, a->waits_len, &priority, to);
    str_add(to, ".\n");
}

void plugin_why_pending(struct plugin_view *v, const struct cache_workload *pod, struct str *to)
{
    struct cache_demand demand;
    struct berth_action action;
    if (pod->requests_len) {
        str_add(to, pod->tasks > 1 ? "Each of its tasks requests " : "It requests ");
        plugin_amounts(pod->requests, pod->requests_len, to);
        str_add(to, ".\n");
    }
    size_t at = plugin_pending(v, pod->workload);
    if (at == SIZE_MAX && plugin_action(v, pod->workload, &action)) {
        planned_print(v, &action, to);
        return;
    }
    if (at == SIZE_MAX || !cache_demand(v->cache, pod->workload, CACHE_RELAX_NOTHING, &demand)) {
        str_add(to, "The plan does not include it.\n");
        return;
    }
    position_print(v, at, to);
    if (demand.why) {
        heading(to, "Reasons");
        str_addf(to, "  - %s\n", demand.why);
        return;
    }
    reasons_print(v, at, to);
    nearest_print(v, pod, at, to);
    preemption_print(v, &demand.workload, to);
    changes_print(v, &demand.workload, to);
}
