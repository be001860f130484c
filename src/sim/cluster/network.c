/* network.c - messages between agents and daemon: they are lost, delayed, repeated and reordered; links are cut.
 *
 * A report is answered once, or not within its time limit. The daemon sends a configuration when the agent requests it,
 * and on every change while the link works (the stream that an agent keeps open).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "control/watch/derived.h"
#include "sim/cluster/agent.h"

#define ANSWER_NS_MAX (15 * SECOND) /* then the agent closes the connection */

/* A report or a configuration in transit. */
struct sim_message {
    struct sim_agent *agent;
    char node[ID_MAX + 1];
    uint64_t epoch, seq, life, question;
    int64_t delivered_ns;
    char *body;
    bool genuine; /* sent by the agent itself */
    bool stale;   /* must be rejected by its number, the only thing that identifies a forgery */
    /* The answer. */
    int status;
    uint64_t revision;
    char hash[DERIVED_HASH_MAX];
    json_t *answer;
};

static void message_free(void *arg)
{
    struct sim_message *m = arg;
    free(m->body);
    json_decref(m->answer);
    mem_free(m);
}

static struct sim_message *message_new(struct sim_agent *a)
{
    struct sim_message *m = mem_zalloc(sizeof *m);
    m->agent = a;
    m->epoch = a->machine.epoch;
    m->life = a->life;
    m->genuine = true;
    memcpy(m->node, a->node, sizeof m->node);
    return m;
}

static struct sim_message *message_copy(const struct sim_message *from)
{
    struct sim_message *m = mem_zalloc(sizeof *m);
    *m = *from;
    m->body = from->body ? strdup(from->body) : NULL;
    m->answer = NULL;
    return m;
}

/* ---- link ------------------------------------------------------------------------------------------------------- */

static int64_t latency_ns(struct sim_world *w)
{
    struct random_stream *rng = &w->agents_rng;
    if (!faults_allow(w, FAULT_LATE) || random_per_mille(rng, 930))
        return random_range(rng, 200 * MICROSECOND, 50 * MILLISECOND);
    if (random_per_mille(rng, 900))
        return random_range(rng, 50 * MILLISECOND, 5 * SECOND);
    return random_range(rng, 5 * SECOND, 3 * MINUTE); /* certainly out of order */
}

static bool gets_lost(struct sim_agent *a, bool to_agent)
{
    struct sim_world *w = a->w;
    if (w->now_ns < (to_agent ? a->deaf_ns : a->mute_ns))
        return true;
    if (w->now_ns < a->flap_ns && (w->now_ns / (7 * SECOND)) % 2)
        return true;
    return faults_allow(w, FAULT_LOST) && random_per_mille(&w->agents_rng, 15);
}

/* ---- reports ---------------------------------------------------------------------------------------------------- */

static bool is_after(uint64_t epoch, uint64_t seq, uint64_t than_epoch, uint64_t than_seq)
{
    return epoch > than_epoch || (epoch == than_epoch && seq > than_seq);
}

/* Returns whether the message must change nothing: its number is not after the last report that this daemon process has
 * accepted, or not after the number in the node's document. Heartbeats that an earlier daemon process accepted are
 * unknown. */
static bool is_stale(const struct sim_world *w, struct sim_agent *a, const struct sim_message *m)
{
    const struct mirror_doc *node = mirror_find(&w->mirror, KIND_NODE, m->node);
    const struct accepted_reports *heard = agent_accepted_reports(a);
    bool known = heard->life == w->daemon.life && !is_after(m->epoch, m->seq, heard->epoch, heard->seq);
    return known || (node && !is_after(m->epoch, m->seq, node->node.epoch, node->node.seq));
}

static void note_unknown(struct sim_agent *a, const json_t *answer)
{
    const json_t *unknown = json_object_get(answer, "unknown");
    for (size_t i = 0; i < json_array_size(unknown); i++)
        vec_push(&a->unknown, (uint64_t)json_integer_value(json_array_get(unknown, i)));
}

static void report_answer(struct sim_agent *a, void *arg)
{
    struct sim_message *m = arg;
    if (a->awaiting != m->seq)
        return;
    world_trace(a->w, "%s hears of report %" PRIu64 ".%" PRIu64 ": %d", a->node, m->epoch, m->seq, m->status);
    a->awaiting = 0;
    const char *code = json_string_value(json_object_get(json_object_get(m->answer, "error"), "code"));
    if (code && strcmp(code, "superseded") == 0) {
        a->was_superseded = true;
        a->superseded_ns = a->w->now_ns;
    }
    note_unknown(a, m->answer);
    node_reported(a->logic, m->seq, m->status, m->answer);
}

static void report_arrives(struct sim_world *w, void *arg)
{
    struct sim_message *m = arg;
    struct sim_agent *a = m->agent;
    (void)w;
    if (a->logic && a->life == m->life && !gets_lost(a, true)) {
        struct sim_message *in = message_copy(m);
        in->answer = json_incref(m->answer);
        agent_post(a, 0, report_answer, in, message_free);
    }
}

static void hang_up(struct sim_agent *a, void *arg)
{
    uint64_t seq = ((struct sim_message *)arg)->seq;
    if (a->awaiting != seq)
        return;
    world_trace(a->w, "%s waits no longer for report %" PRIu64, a->node, seq);
    a->awaiting = 0;
    node_reported(a->logic, seq, 0, NULL);
}

static void report_answered(struct sim_world *w, void *ctx, const struct request_outcome *o)
{
    struct sim_message *m = ctx;
    struct sim_agent *a = m->agent;
    struct accepted_reports *heard = agent_accepted_reports(a);
    if (o->status == 200) {
        const struct mirror_doc *node = mirror_find(&w->mirror, KIND_NODE, m->node);
        w->counts.reports++;
        if (node && node->node.epoch < m->epoch)
            world_breach(w, 14, "a report of epoch %" PRIu64 " of %s was taken, and it is known to be at %" PRIu64,
                         m->epoch, m->node, node->node.epoch);
        heard->ns = m->delivered_ns > heard->ns ? m->delivered_ns : heard->ns;
        if (heard->life != w->daemon.life || is_after(m->epoch, m->seq, heard->epoch, heard->seq)) {
            heard->epoch = m->epoch;
            heard->seq = m->seq;
            heard->life = w->daemon.life;
        }
    }
    if (!m->genuine || o->status == 0) /* no answer arrives, so the agent will close the connection */
        return;
    struct sim_message *back = message_copy(m);
    back->status = o->status;
    back->answer = json_deep_copy(o->body);
    world_schedule(w, latency_ns(w), report_arrives, back, message_free);
}

static void report_deliver(struct sim_world *w, void *arg)
{
    struct sim_message *sent = arg, *m = message_copy(sent);
    struct sim_agent *a = sent->agent;
    char path[128], who[96];
    m->delivered_ns = w->now_ns;
    if (sent->stale && !is_stale(w, a, m)) { /* the daemon was restarted and cannot know that the message is outdated */
        message_free(m);
        return;
    }
    (void)snprintf(path, sizeof path, "/v1/nodes/%s/report", sent->node);
    (void)snprintf(who, sizeof who, "%s%s", sent->genuine ? "" : "somebody as ", a->node);
    world_trace(w, "report %" PRIu64 ".%" PRIu64 " of %s arrives", m->epoch, m->seq, who);
    bool foreign = strcmp(sent->node, a->node) != 0, stale = is_stale(w, a, m);
    world_count_check(w, foreign ? 22 : 14);
    struct sim_request ask = {.who = who,
                              .method = "POST",
                              .path = path,
                              .token = a->token,
                              .body = sent->body,
                              .refuse = foreign || stale,
                              .harmless = foreign || stale,
                              .invariant = foreign ? 22 : 14,
                              .then = report_answered,
                              .ctx = m,
                              .drop = message_free};
    (void)world_request(w, &ask);
}

static void report_send(struct sim_agent *a, struct sim_message *m)
{
    struct sim_world *w = a->w;
    struct random_stream *rng = &w->agents_rng;
    if (gets_lost(a, false)) {
        message_free(m);
        return;
    }
    if (faults_allow(w, FAULT_REPEATED) && random_per_mille(rng, 30)) /* soon or late */
        world_schedule(w, random_per_mille(rng, 700) ? latency_ns(w) : random_range(rng, SECOND, 20 * MINUTE),
                       report_deliver, message_copy(m), message_free);
    world_schedule(w, latency_ns(w), report_deliver, m, message_free);
}

void network_report(struct sim_agent *a, uint64_t seq, char *text)
{
    struct sim_message *m = message_new(a);
    m->seq = a->awaiting = seq;
    agent_post(a, ANSWER_NS_MAX, hang_up, message_copy(m), message_free);
    m->body = text;
    report_send(a, m);
}

void network_forged_report(struct sim_agent *a, const struct forged_report *forged_report)
{
    struct sim_message *m = message_new(a);
    (void)snprintf(m->node, sizeof m->node, "%s", forged_report->node);
    m->genuine = false;
    m->epoch = forged_report->epoch;
    m->seq = forged_report->seq;
    m->stale = forged_report->stale;
    m->body = forged_report->text;
    report_send(a, m);
}

/* ---- configuration ---------------------------------------------------------------------------------------------- */

static void config_configure(struct sim_agent *a, void *arg)
{
    struct sim_message *m = arg;
    struct berth_err err;
    if (m->question && a->reading == m->question)
        a->reading = 0;
    if (m->status != 200)
        return;
    world_trace(a->w, "%s reads its configuration of revision %" PRIu64, a->node, m->revision);
    if (m->revision >= a->listed_revision) {
        json_decref(a->listed);
        a->listed = json_incref(m->answer);
        a->listed_revision = m->revision;
    }
    if (node_configure(a->logic, m->revision, m->hash, m->answer, &err) < 0)
        world_breach(a->w, RULE_LISTED, "%s makes nothing of its configuration: %s", a->node, err.text);
}

static void config_arrives(struct sim_world *w, void *arg)
{
    struct sim_message *m = arg;
    struct sim_agent *a = m->agent;
    (void)w;
    if (a->logic && a->life == m->life && !gets_lost(a, true)) {
        struct sim_message *in = message_copy(m);
        in->answer = json_incref(m->answer);
        agent_post(a, 0, config_configure, in, message_free);
    }
}

/* Checks that a node's configuration lists exactly its instances, with the state to run or to stop. */
static void config_verify(struct sim_world *w, const char *node, const json_t *config)
{
    const json_t *list = json_object_get(config, "instances");
    size_t there = 0;
    world_count_check(w, 22);
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

static void config_answered(struct sim_world *w, void *ctx, const struct request_outcome *o)
{
    struct sim_message *m = ctx;
    if (o->status == 0)
        return;
    struct sim_message *back = message_copy(m);
    back->status = o->status;
    back->revision = o->revision;
    if (o->status == 200) {
        struct str text = {.at = (char *)o->text, .len = strlen(o->text)};
        (void)derived_hash(&text, back->hash);
        back->answer = json_loads(o->text, 0, NULL);
        config_verify(w, m->node, back->answer);
    }
    world_schedule(w, latency_ns(w), config_arrives, back, message_free);
}

static void config_ask(struct sim_world *w, const struct sim_message *m)
{
    char path[128];
    (void)snprintf(path, sizeof path, "/v1/nodes/%s/config", m->node);
    struct sim_request ask = {.who = m->agent->node,
                              .method = "GET",
                              .path = path,
                              .token = m->agent->token,
                              .harmless = true,
                              .invariant = 20,
                              .then = config_answered,
                              .ctx = message_copy(m),
                              .drop = message_free};
    (void)world_request(w, &ask);
}

static void config_asked(struct sim_world *w, void *arg)
{
    struct sim_message *m = arg;
    world_trace(w, "%s asks for its configuration", m->node);
    config_ask(w, m);
}

static void stop_reading(struct sim_agent *a, void *arg)
{
    struct sim_message *m = arg;
    if (a->reading != m->question)
        return;
    a->reading = 0;
    network_reread(a); /* until it has a configuration */
}

void network_reread(struct sim_agent *a)
{
    if (a->reading)
        return;
    struct sim_message *m = message_new(a);
    m->question = a->reading = ++a->asked;
    agent_post(a, ANSWER_NS_MAX, stop_reading, message_copy(m), message_free);
    if (gets_lost(a, false)) {
        message_free(m);
        return;
    }
    world_schedule(a->w, latency_ns(a->w), config_asked, m, message_free);
}

/* Sends on a stream that was already open, so only the direction to the agent must work. */
static void config_push(struct sim_world *w, void *arg)
{
    struct sim_message *m = arg;
    struct sim_agent *a = m->agent;
    a->pushing = false;
    if (!a->logic || a->life != m->life || a->removed)
        return;
    world_trace(w, "the configuration of %s is pushed", m->node);
    config_ask(w, m);
}

void agents_config_changed(struct sim_world *w, const char *node)
{
    for (size_t i = 0; i < w->agents->at.len; i++) {
        struct sim_agent *a = w->agents->at.at[i];
        if (!a->logic || a->pushing || a->removed || strcmp(a->node, node) != 0 || w->now_ns < a->deaf_ns)
            continue;
        a->pushing = true;
        world_schedule(w, random_range(&w->agents_rng, 100 * MICROSECOND, 20 * MILLISECOND), config_push,
                       message_new(a), message_free);
    }
}
