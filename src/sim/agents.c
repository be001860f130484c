/* agents.c - one stand-in agent per node: reads what it shall run, reports what runs, over a network that does what it likes.
 *
 * Messages are lost, late, repeated and out of order; an agent is cut off both ways or only hears nothing, dies and comes
 * back with the next epoch, and now and then somebody else speaks in its name. Its programs run on meanwhile.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/programs.h"

struct agent {
    char node[ID_MAX + 1], token[TOKEN_TEXT_MAX];
    bool removed;
    uint64_t epoch, seq;
    int64_t cut_ns, deaf_ns, dead_ns; /* until when: nothing gets through; no answer does; it is not running */
    int64_t acked_ns;                 /* when the last report that was answered was sent */
    int64_t heard_ns;                 /* when the daemon last took a report */
    uint64_t taken_epoch, taken_seq;  /* of the last report that the daemon took, */
    uint64_t taken_life;              /* and which daemon that was */
    uint64_t config_revision;         /* of the configuration it has */
    struct programs programs;
};

struct agents {
    VEC(struct agent *) at;
    struct map started; /* instances that ever were */
    VEC(uint64_t) ids;
};

/* A report or a question under way. */
struct message {
    struct agent *agent;
    char node[ID_MAX + 1], token[TOKEN_TEXT_MAX];
    uint64_t epoch, seq;
    int64_t sent_ns, delivered_ns;
    char *body;
    bool genuine; /* of the agent itself */
    bool lies;    /* and must be refused: nobody can tell a liar by anything but its number */
    /* The answer. */
    int status;
    uint64_t revision;
    json_t *config;
};

static void beat(struct world *w, void *arg);
static void read_config(struct world *w, struct agent *a);

struct agents *agents_new(struct world *w)
{
    (void)w;
    return mem_zalloc(sizeof(struct agents));
}

void agents_free(struct agents *all)
{
    if (!all)
        return;
    for (size_t i = 0; i < all->at.len; i++) {
        vec_done(&all->at.at[i]->programs.at);
        mem_free(all->at.at[i]);
    }
    vec_done(&all->at);
    vec_done(&all->ids);
    map_done(&all->started);
    mem_free(all);
}

static struct agent *find(const struct world *w, const char *node)
{
    for (size_t i = 0; i < w->agents->at.len; i++)
        if (!w->agents->at.at[i]->removed && strcmp(w->agents->at.at[i]->node, node) == 0)
            return w->agents->at.at[i];
    return NULL;
}

bool agents_has(const struct world *w, const char *node)
{
    return find(w, node) != NULL;
}

size_t agents_len(const struct world *w)
{
    return w->agents->at.len;
}

void agents_add(struct world *w, const char *node, const char *token)
{
    struct agent *a = mem_zalloc(sizeof *a);
    (void)snprintf(a->node, sizeof a->node, "%s", node);
    (void)snprintf(a->token, sizeof a->token, "%s", token);
    a->epoch = 1 + chance_below(&w->agents_luck, 5);
    a->acked_ns = a->heard_ns = w->now_ns;
    vec_push(&w->agents->at, a);
    world_later(w, chance_range(&w->agents_luck, 0, 5 * SECOND), beat, a, NULL);
}

void agents_remove(struct world *w, const char *node)
{
    struct agent *a = find(w, node);
    if (!a)
        return;
    a->removed = true;
    a->programs.at.len = 0;
}

/* ---- 5, 6: nothing runs twice -------------------------------------------------------------------------------------- */

static bool same_id(const void *ctx, uint32_t at, const void *id)
{
    return ((const struct agents *)ctx)->ids.at[at] == *(const uint64_t *)id;
}

/* Does one of the two take over from another? Then both run for a while. */
static bool takes_over(const struct mirror *m, uint64_t a, uint64_t b)
{
    const struct seen *x = mirror_instance(m, a), *y = mirror_instance(m, b);
    return (x && x->instance.instance.replaces) || (y && y->instance.instance.replaces);
}

void agents_started(struct world *w, const struct program *p)
{
    struct agents *all = w->agents;
    if (map_find(&all->started, hash_u64(p->id), same_id, all, &p->id) != MAP_NONE)
        world_breach(w, 6, "instance %" PRIu64 " of %s is started a second time", p->id, p->workload);
    else {
        map_add(&all->started, hash_u64(p->id), (uint32_t)all->ids.len);
        vec_push(&all->ids, p->id);
    }
    for (size_t i = 0; i < all->at.len; i++)
        for (size_t k = 0; k < all->at.at[i]->programs.at.len; k++) {
            const struct program *o = &all->at.at[i]->programs.at.at[k];
            if (o->id == p->id || !program_lives(o) || o->ordinal != p->ordinal || o->generation != p->generation ||
                o->twice || p->twice || strcmp(o->workload, p->workload) != 0 || takes_over(&w->mirror, o->id, p->id))
                continue;
            world_breach(w, 5, "%s/%u is started as %" PRIu64 " while it still runs as %" PRIu64 " on %s", p->workload,
                         p->ordinal, p->id, o->id, all->at.at[i]->node);
        }
}

/* ---- messages ------------------------------------------------------------------------------------------------------ */

static void message_free(void *arg)
{
    struct message *m = arg;
    free(m->body);
    json_decref(m->config);
    mem_free(m);
}

static struct message *message_new(struct world *w, struct agent *a)
{
    struct message *m = mem_zalloc(sizeof *m);
    m->agent = a;
    m->epoch = a->epoch;
    m->genuine = true;
    m->sent_ns = w->now_ns;
    memcpy(m->node, a->node, sizeof m->node);
    memcpy(m->token, a->token, sizeof m->token);
    return m;
}

static int64_t latency_ns(struct world *w)
{
    struct chance *luck = &w->agents_luck;
    if (w->calm || chance_in(luck, 900))
        return chance_range(luck, 200 * MICROSECOND, 50 * MILLISECOND);
    return chance_in(luck, 900) ? chance_range(luck, 50 * MILLISECOND, 5 * SECOND)
                                : chance_range(luck, 5 * SECOND, 3 * MINUTE); /* out of order for sure */
}

static bool gets_lost(struct world *w, const struct agent *a, bool to_agent)
{
    if (w->now_ns < a->cut_ns || w->now_ns < a->dead_ns || (to_agent && w->now_ns < a->deaf_ns))
        return true;
    return !w->calm && chance_in(&w->agents_luck, 20);
}

/* ---- reports ------------------------------------------------------------------------------------------------------- */

static void restart(struct world *w, struct agent *a)
{
    const struct seen *node = mirror_find(&w->mirror, KIND_NODE, a->node);
    a->epoch = 1 + (node && node->node.epoch > a->epoch ? node->node.epoch : a->epoch);
    a->seq = 0;
}

static void report_answer(struct world *w, void *arg)
{
    struct message *m = arg;
    struct agent *a = m->agent;
    if (a->removed || m->epoch != a->epoch || gets_lost(w, a, true))
        return;
    world_says(w, "%s hears of report %" PRIu64 ".%" PRIu64 ": %d", a->node, m->epoch, m->seq, m->status);
    if (m->status == 200 && m->sent_ns > a->acked_ns)
        a->acked_ns = m->sent_ns;
    if (m->status == 200)
        read_config(w, a);
    /* Somebody else speaks in its name: it begins anew, above everything that is known. */
    if (m->status == 409 && m->seq == a->seq && (m->epoch < a->taken_epoch || m->seq > a->taken_seq))
        restart(w, a);
}

static bool is_after(uint64_t epoch, uint64_t seq, uint64_t than_epoch, uint64_t than_seq)
{
    return epoch > than_epoch || (epoch == than_epoch && seq > than_seq);
}

/* What this daemon has taken before, or something later than it, must change nothing; nor what the node's document is
 * later than. Heartbeats that an earlier daemon took are known to nobody. */
static bool is_stale(const struct world *w, const struct agent *a, const struct message *m)
{
    const struct seen *node = mirror_find(&w->mirror, KIND_NODE, a->node);
    bool heard = a->taken_life == w->daemon.life && !is_after(m->epoch, m->seq, a->taken_epoch, a->taken_seq);
    return heard || (node && !is_after(m->epoch, m->seq, node->node.epoch, node->node.seq));
}

static void report_answered(struct world *w, void *ctx, const struct outcome *o)
{
    struct message *m = ctx;
    struct agent *a = m->agent;
    if (o->status == 200) {
        w->counts.reports++;
        a->heard_ns = m->delivered_ns > a->heard_ns ? m->delivered_ns : a->heard_ns;
        if (a->taken_life != w->daemon.life || is_after(m->epoch, m->seq, a->taken_epoch, a->taken_seq)) {
            a->taken_epoch = m->epoch;
            a->taken_seq = m->seq;
            a->taken_life = w->daemon.life;
        }
    }
    if (!m->genuine)
        return;
    struct message *back = message_new(w, a);
    back->epoch = m->epoch;
    back->seq = m->seq;
    back->sent_ns = m->sent_ns;
    back->status = o->status;
    world_later(w, latency_ns(w), report_answer, back, message_free);
}

static void report_deliver(struct world *w, void *arg)
{
    struct message *sent = arg, *m = message_new(w, sent->agent);
    char path[128], who[96];
    memcpy(m->node, sent->node, sizeof m->node);
    m->epoch = sent->epoch;
    m->seq = sent->seq;
    m->genuine = sent->genuine;
    m->sent_ns = sent->sent_ns;
    m->delivered_ns = w->now_ns;
    if (sent->lies && !is_stale(w, sent->agent, m)) { /* the daemon has begun anew, and knows no better */
        message_free(m);
        return;
    }
    (void)snprintf(path, sizeof path, "/v1/nodes/%s/report", sent->node);
    (void)snprintf(who, sizeof who, "%s%s", sent->genuine ? "" : "somebody as ", sent->agent->node);
    world_says(w, "report %" PRIu64 ".%" PRIu64 " of %s arrives", m->epoch, m->seq, who);
    bool foreign = strcmp(sent->node, sent->agent->node) != 0;
    struct ask ask = {.who = who,
                      .method = "POST",
                      .path = path,
                      .token = sent->token,
                      .body = sent->body,
                      .refuse = foreign,
                      .harmless = foreign || is_stale(w, sent->agent, m),
                      .invariant = foreign ? 22 : 14,
                      .then = report_answered,
                      .ctx = m,
                      .drop = message_free};
    (void)world_ask(w, &ask);
}

static char *report_text(uint64_t epoch, uint64_t seq, json_t *items)
{
    json_t *report =
        json_pack("{s:I, s:I, s:o}", "epoch", (json_int_t)epoch, "seq", (json_int_t)seq, "instances", items);
    char *text = json_dumps(report, JSON_COMPACT);
    json_decref(report);
    return text;
}

static void report_send(struct world *w, struct agent *a, struct message *m)
{
    struct chance *luck = &w->agents_luck;
    if (gets_lost(w, a, false)) {
        message_free(m);
        return;
    }
    if (!w->calm && chance_in(luck, 40)) { /* repeated, soon or late */
        struct message *again = message_new(w, a);
        memcpy(again->node, m->node, sizeof again->node);
        again->epoch = m->epoch;
        again->seq = m->seq;
        again->genuine = m->genuine;
        again->lies = m->lies;
        again->body = strdup(m->body);
        world_later(w, chance_in(luck, 700) ? latency_ns(w) : chance_range(luck, SECOND, 20 * MINUTE), report_deliver,
                    again, message_free);
    }
    world_later(w, latency_ns(w), report_deliver, m, message_free);
}

static void report(struct world *w, struct agent *a)
{
    struct message *m = message_new(w, a);
    bool whole = w->calm || chance_in(&w->agents_luck, 900);
    m->seq = ++a->seq;
    m->body = report_text(m->epoch, m->seq, whole ? programs_report(w, &a->programs) : json_array());
    report_send(w, a, m);
}

/* ---- configuration ------------------------------------------------------------------------------------------------- */

static void config_arrive(struct world *w, void *arg)
{
    struct message *m = arg;
    struct agent *a = m->agent;
    size_t i;
    json_t *instance;
    /* What is older than what it has was overtaken. */
    if (a->removed || m->epoch != a->epoch || !m->config || m->revision < a->config_revision || gets_lost(w, a, true))
        return;
    world_says(w, "%s reads its configuration of revision %" PRIu64, a->node, m->revision);
    a->config_revision = m->revision;
    for (size_t k = 0; k < a->programs.at.len; k++)
        a->programs.at.at[k].wanted = false;
    json_array_foreach(json_object_get(m->config, "instances"), i, instance) programs_want(w, &a->programs, instance);
    programs_sweep(&a->programs);
}

/* A node is told of exactly what it holds: to run, or to stop. */
static void config_judge(struct world *w, const char *node, const json_t *config)
{
    const json_t *list = json_object_get(config, "instances");
    size_t there = 0;
    for (size_t i = 0; i < w->mirror.of[KIND_INSTANCE].len; i++) {
        const struct berth_instance *is = &w->mirror.of[KIND_INSTANCE].at[i]->instance.instance;
        if (!state_holds(is->state) || strcmp(is->node, node) != 0)
            continue;
        there++;
        const json_t *found = NULL;
        for (size_t k = 0; k < json_array_size(list) && !found; k++)
            if ((uint64_t)json_integer_value(json_object_get(json_array_get(list, k), "id")) == is->id)
                found = json_array_get(list, k);
        const char *said = json_string_value(json_object_get(found, "state"));
        if (!said || (strcmp(said, "stop") == 0) != (is->state == BERTH_STOPPING))
            world_breach(w, 22, "%s is told to %s instance %" PRIu64 ", which is %s", node, said ? said : "forget",
                         is->id, berth_state_name(is->state));
    }
    if (json_array_size(list) != there)
        world_breach(w, 22, "%s is told of %zu instances, and holds %zu", node, json_array_size(list), there);
}

static void config_answered(struct world *w, void *ctx, const struct outcome *o)
{
    struct message *m = ctx, *back = message_new(w, m->agent);
    back->epoch = m->epoch;
    back->revision = o->revision;
    if (o->status == 200) {
        back->config = json_loads(o->text, 0, NULL);
        config_judge(w, m->node, back->config);
    }
    world_later(w, latency_ns(w), config_arrive, back, message_free);
}

static void config_deliver(struct world *w, void *arg)
{
    struct message *sent = arg, *m = message_new(w, sent->agent);
    char path[128];
    m->epoch = sent->epoch;
    (void)snprintf(path, sizeof path, "/v1/nodes/%s/config", sent->node);
    world_says(w, "%s asks for its configuration", sent->node);
    struct ask ask = {.who = sent->agent->node,
                      .method = "GET",
                      .path = path,
                      .token = sent->token,
                      .harmless = true,
                      .invariant = 20,
                      .then = config_answered,
                      .ctx = m,
                      .drop = message_free};
    (void)world_ask(w, &ask);
}

static void read_config(struct world *w, struct agent *a)
{
    if (gets_lost(w, a, false))
        return;
    world_later(w, latency_ns(w), config_deliver, message_new(w, a), message_free);
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

static void beat(struct world *w, void *arg)
{
    struct agent *a = arg;
    if (a->removed)
        return;
    unsigned rate = w->options->rates.agents ? w->options->rates.agents : 100;
    world_later(w, chance_range(&w->agents_luck, 2 * SECOND, 8 * SECOND) * 100 / rate, beat, a, NULL);
    world_says(w, "%s looks at its %zu programs", a->node, a->programs.at.len);
    if (w->now_ns < a->dead_ns) {
        programs_pass(w, &a->programs, 0); /* what runs goes on, and nobody fences it */
        return;
    }
    programs_pass(w, &a->programs, w->now_ns - a->acked_ns);
    report(w, a);
}

void agents_partition(struct world *w, size_t which, int64_t for_ns, bool both_ways)
{
    struct agent *a = w->agents->at.at[which];
    world_says(w, "%s %s for %" PRId64 " s", a->node, both_ways ? "is cut off" : "hears nothing", for_ns / SECOND);
    if (both_ways)
        a->cut_ns = w->now_ns + for_ns;
    else
        a->deaf_ns = w->now_ns + for_ns;
}

void agents_restart(struct world *w, size_t which)
{
    struct agent *a = w->agents->at.at[which];
    /* Shorter than a lease: nobody fences while it is dead. */
    a->dead_ns = w->now_ns + chance_range(&w->agents_luck, 0, 12 * SECOND);
    world_says(w, "%s restarts", a->node);
    restart(w, a);
}

/* Claims of all kinds under the agent's name, each for a reason of its own to be refused. */
void agents_impostor(struct world *w, size_t which)
{
    struct chance *luck = &w->agents_luck;
    struct agent *a = w->agents->at.at[which], *other = w->agents->at.at[chance_below(luck, w->agents->at.len)];
    struct message *m = message_new(w, a);
    json_t *items = json_array();
    m->genuine = false;
    m->seq = a->seq + 1000000;
    for (size_t i = 0; i < a->programs.at.len; i++)
        (void)json_array_append_new(items, json_pack("{s:I, s:s}", "id", (json_int_t)a->programs.at.at[i].id, "state",
                                                     CHANCE_PICK(luck, char *, "failed", "ended", "stopped")));
    switch (chance_below(luck, 5)) {
    case 0: /* an agent that was replaced */
        m->epoch = a->taken_epoch ? a->taken_epoch - 1 : 0;
        m->lies = true;
        break;
    case 1: /* the last one again, with other words */
        m->epoch = a->taken_epoch;
        m->seq = a->taken_seq;
        m->lies = true;
        break;
    case 2: memcpy(m->node, other->node, sizeof m->node); break; /* another node's name */
    case 3:                                                      /* of programs that are not its own */
        json_array_clear(items);
        for (size_t i = 0; other != a && i < other->programs.at.len; i++)
            (void)json_array_append_new(
                items, json_pack("{s:I, s:s}", "id", (json_int_t)other->programs.at.at[i].id, "state", "failed"));
        m->epoch = a->epoch;
        m->seq = ++a->seq;
        break;
    default: /* a second machine with the same disk, started later: it wins, and runs nothing yet */
        json_array_clear(items);
        m->epoch = a->epoch + 1;
        m->seq = 1;
        break;
    }
    if (m->seq > a->seq + 1000 && m->epoch >= a->taken_epoch && strcmp(m->node, a->node) == 0)
        m->epoch = 0; /* the other one is itself */
    w->counts.double_agents++;
    world_says(w, "somebody speaks as %s", a->node);
    m->body = report_text(m->epoch, m->seq, items);
    report_send(w, a, m);
}

void agents_calm(struct world *w)
{
    for (size_t i = 0; i < w->agents->at.len; i++)
        w->agents->at.at[i]->cut_ns = w->agents->at.at[i]->deaf_ns = w->agents->at.at[i]->dead_ns = 0;
}

/* ---- judging ------------------------------------------------------------------------------------------------------- */

void agents_lost(struct world *w, const char *node)
{
    const struct agent *a = find(w, node);
    int64_t since_ns = a && a->heard_ns > w->daemon.started_ns ? a->heard_ns : w->daemon.started_ns;
    if (w->now_ns - since_ns < LEASE_S * SECOND)
        world_breach(w, 5, "node %s counts as lost after %" PRId64 " s, its lease is %d", node,
                     (w->now_ns - since_ns) / SECOND, LEASE_S);
}

void agents_check(struct world *w)
{
    /* A node that was removed takes its machine along. */
    for (size_t i = 0; i < w->agents->at.len; i++) {
        struct agent *a = w->agents->at.at[i];
        if (!a->removed && w->daemon.control && !mirror_find(&w->mirror, KIND_NODE, a->node)) {
            a->removed = true;
            a->programs.at.len = 0;
        }
    }
}

void agents_rest(struct world *w)
{
    for (size_t i = 0; i < w->agents->at.len && !w->unrest.len; i++) {
        const struct agent *a = w->agents->at.at[i];
        for (size_t k = 0; k < a->programs.at.len && !w->unrest.len; k++) {
            const struct program *p = &a->programs.at.at[k];
            const struct seen *s = mirror_instance(&w->mirror, p->id);
            if (program_lives(p) && (!s || strcmp(s->instance.instance.node, a->node) != 0))
                str_addf(&w->unrest, "%" PRIu64 " of %s still runs on %s", p->id, p->workload, a->node);
        }
    }
}
