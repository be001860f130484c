/* report.c - builds reports to the daemon and handles the answers.
 *
 * Only one report is in flight, so reports arrive in order; later changes go into the next report. An unanswered report
 * may have been accepted: the next report repeats its content under a new sequence number.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/plant.h"
#include "node/node_parts.h"
#include "wire/text/document.h"
#include "wire/text/quantity.h"

#define RETRY_NS_FIRST NODE_SECOND
#define RETRY_NS_MAX (10 * NODE_SECOND)
#define HEARTBEAT_NS_MIN (NODE_SECOND / 2)

static const char *state_text(const struct node_instance *h)
{
    switch (h->state) {
    case NODE_STARTING: return "starting";
    case NODE_RUNNING: return "running";
    case NODE_STOPPING: return "stopping";
    default: return h->end == NODE_ENDED ? "ended" : h->end == NODE_FAILED ? "failed" : "stopped";
    }
}

/* ---- one instance ----------------------------------------------------------------------------------------------- */

/* Tells whether usage changed by more than a tenth since the last acknowledged value. */
static bool use_differs(const struct node_instance_usage *u)
{
    int64_t apart = u->now > u->said ? u->now - u->said : u->said - u->now;
    return u->said < 0 || apart > u->said / 10;
}

static bool node_instance_differs(const struct node_instance *h)
{
    bool differs = h->changed > h->said;
    for (size_t i = 0; !differs && node_instance_is_alive(h) && i < h->use.len; i++)
        differs = use_differs(&h->use.at[i]);
    return differs;
}

static void set_list(json_t *item, const char *key, const char *texts)
{
    json_t *list = json_array();
    for (const char *at = texts; *at;) {
        size_t len = strcspn(at, ",");
        (void)json_array_append_new(list, json_stringn(at, len));
        at += len + (at[len] != '\0');
    }
    (void)json_object_set_new(item, key, list);
}

static json_t *ports_make(const struct node_instance *h)
{
    json_t *ports = json_array();
    for (size_t i = 0; i < h->ports.len; i++)
        (void)json_array_append_new(
            ports, json_pack("{s:s, s:i}", "endpoint", h->ports.at[i].endpoint, "port", (int)h->ports.at[i].port));
    return ports;
}

static json_t *usage_make(struct node_instance *h)
{
    char text[QUANTITY_TEXT_MAX];
    json_t *usage = json_object();
    for (size_t i = 0; i < h->use.len; i++) {
        struct node_instance_usage *u = &h->use.at[i];
        if (!u->spent && !node_instance_is_alive(h))
            continue;
        u->sent = u->now;
        (void)json_object_set_new(usage, u->resource, json_string(quantity_print(u->resource, u->now, text)));
    }
    return usage;
}

static json_t *item_make(struct node_instance *h)
{
    json_t *item = json_pack("{s:I, s:s, s:b}", "id", (json_int_t)h->id, "state", state_text(h), "ready", h->ready);
    if (h->error)
        (void)json_object_set_new(item, "error", json_string(h->error));
    if (h->state == NODE_OVER && h->exit >= 0)
        (void)json_object_set_new(item, "exit", json_integer(h->exit));
    if (h->state == NODE_OVER && h->oom_killed)
        (void)json_object_set_new(item, "oom_killed", json_true());
    if (h->ports.len && node_instance_is_alive(h))
        (void)json_object_set_new(item, "ports", ports_make(h));
    if (h->exclusive && node_instance_is_alive(h))
        (void)json_object_set(item, "exclusive", h->exclusive);
    CLEANUP(json) json_t *usage = usage_make(h);
    if (json_object_size(usage))
        (void)json_object_set(item, "usage", usage);
    if (h->progress >= 0)
        (void)json_object_set_new(item, "progress", json_integer(h->progress));
    if (h->note)
        (void)json_object_set_new(item, "note", json_string(h->note));
    set_list(item, "unenforced", h->unenforced ? h->unenforced : "");
    set_list(item, "over", h->over ? h->over : "");
    if (h->foreign_port && node_instance_is_alive(h))
        (void)json_object_set_new(item, "foreign_port", json_integer(h->foreign_port));
    h->sent = h->changed;
    return item;
}

/* ---- sending ---------------------------------------------------------------------------------------------------- */

static void send_report(struct node_agent *n, int64_t now_ns)
{
    json_t *items = json_array();
    for (size_t i = 0; i < n->node_instance.len; i++)
        if (node_instance_differs(n->node_instance.at[i]))
            (void)json_array_append_new(items, item_make(n->node_instance.at[i]));
    n->seq++;
    json_t *report =
        json_pack("{s:I, s:I, s:o}", "epoch", (json_int_t)n->epoch, "seq", (json_int_t)n->seq, "instances", items);
    n->self_sent = take_ptr(&n->self);
    if (n->self_sent)
        (void)json_object_set(report, "node", n->self_sent);
    char *text = json_dumps(report, JSON_COMPACT);
    json_decref(report);
    n->sending = true;
    n->sent_ns = now_ns;
    n->next_ns = INT64_MAX;
    n->env.report(n->env.ctx, n->seq, text);
}

void report_within(struct node_agent *n, int64_t ns)
{
    int64_t at_ns = n->env.steady_ns(n->env.ctx) + ns;
    if (!n->begun || n->superseded || n->failures > 0) /* after a failure the retry delay applies */
        return;
    if (at_ns < n->next_ns)
        n->next_ns = at_ns;
}

void report_tick(struct node_agent *n)
{
    if (!n->begun || n->sending || n->superseded)
        return;
    int64_t now_ns = n->env.steady_ns(n->env.ctx);
    if (n->next_ns <= now_ns)
        send_report(n, now_ns);
    else if (n->next_ns != INT64_MAX)
        n->env.wake_at(n->env.ctx, n->next_ns);
}

/* ---- answers ---------------------------------------------------------------------------------------------------- */

/* Marks the content of the report as acknowledged. */
static void mark_acknowledged(struct node_agent *n)
{
    for (size_t i = 0; i < n->node_instance.len; i++) {
        struct node_instance *h = n->node_instance.at[i];
        if (h->sent > h->said)
            h->said = h->sent;
        for (size_t k = 0; k < h->use.len; k++)
            if (h->use.at[k].sent >= 0) {
                h->use.at[k].said = h->use.at[k].sent;
                h->use.at[k].sent = -1;
            }
    }
}

static void forget_sent_report(struct node_agent *n)
{
    for (size_t i = 0; i < n->node_instance.len; i++) {
        struct node_instance *h = n->node_instance.at[i];
        h->sent = 0;
        for (size_t k = 0; k < h->use.len; k++)
            h->use.at[k].sent = -1;
    }
}

static void mark_unknown(struct node_agent *n, const json_t *unknown)
{
    for (size_t i = 0; i < json_array_size(unknown); i++) {
        struct node_instance *h = node_instance_find(n, (uint64_t)json_integer_value(json_array_get(unknown, i)));
        if (h)
            h->unknown = true;
    }
}

static void set_heartbeat(struct node_agent *n, const json_t *answer)
{
    int64_t lease_ns = json_integer_value(json_object_get(answer, "lease_ns"));
    if (n->heartbeat_given || lease_ns <= 0)
        return;
    n->heartbeat_ns = lease_ns / 3 > HEARTBEAT_NS_MIN ? lease_ns / 3 : HEARTBEAT_NS_MIN;
}

/* Returns the report interval: short enough that no instance is fenced while the daemon answers. */
static int64_t beat_ns(const struct node_agent *n)
{
    int64_t beat = n->heartbeat_ns;
    for (size_t i = 0; i < n->node_instance.len; i++) {
        const struct node_instance *h = n->node_instance.at[i];
        if (h->fence_ns && node_instance_is_alive(h) && h->fence_ns / 3 < beat)
            beat = h->fence_ns / 3 > HEARTBEAT_NS_MIN ? h->fence_ns / 3 : HEARTBEAT_NS_MIN;
    }
    return beat;
}

static bool differs_urgently(const struct node_agent *n)
{
    for (size_t i = 0; i < n->node_instance.len; i++)
        if (n->node_instance.at[i]->changed > n->node_instance.at[i]->said)
            return true;
    return false;
}

static void on_report_accepted(struct node_agent *n, const json_t *answer)
{
    const char *hash = json_string_value(json_object_get(answer, "config"));
    n->failures = 0;
    n->heard_ns = n->sent_ns;
    n->env.heard(n->env.ctx, n->sent_ns);
    set_heartbeat(n, answer);
    mark_acknowledged(n);
    json_decref(take_ptr(&n->self_sent));
    mark_unknown(n, json_object_get(answer, "unknown"));
    n->next_ns = n->sent_ns + beat_ns(n);
    if (differs_urgently(n))
        report_within(n, 0);
    n->accepted = true;
    if (n->pending) {
        json_t *config = take_ptr(&n->pending);
        desired_apply(n, config);
        json_decref(config);
    }
    if (hash && (!n->hash || strcmp(hash, n->hash) != 0))
        n->env.reread(n->env.ctx);
}

static bool is_superseded(int status, const json_t *answer)
{
    const char *code = json_string_value(json_object_get(json_object_get(answer, "error"), "code"));
    return status == 409 && code && strcmp(code, "superseded") == 0 && !PLANTED(NODE_STAYS);
}

/* Stops everything: another agent has taken over this node. */
static void stop_superseded(struct node_agent *n, const json_t *answer)
{
    const char *text = json_string_value(json_object_get(json_object_get(answer, "error"), "message"));
    n->superseded = true;
    log_write(n->env.log, n->env.clock_ns(n->env.ctx), LEVEL_ERROR, "agent.superseded", LOG_TEXT("node", n->id),
              LOG_TEXT("text", text));
    node_settle(n);
    n->env.superseded(n->env.ctx, text ? text : "another agent runs as this node");
}

/* Tells whether the daemon could not parse the report: it would refuse the same content again. */
static bool is_unreadable(int status)
{
    return status == 400 || status == 413;
}

static void refused(struct node_agent *n, int status)
{
    int64_t wait_ns = n->failures < 4 ? RETRY_NS_FIRST << n->failures : RETRY_NS_MAX;
    n->failures++;
    if (PLANTED(NODE_HEARS_ITSELF))
        n->env.heard(n->env.ctx, n->heard_ns = n->sent_ns);
    if (PLANTED(NODE_SAYS_ONCE))
        mark_acknowledged(n);
    forget_sent_report(n);
    if (is_unreadable(status))
        json_decref(take_ptr(&n->self_sent));
    else
        machine_state_merge(n, take_ptr(&n->self_sent));
    n->next_ns = n->env.steady_ns(n->env.ctx) + (wait_ns < n->heartbeat_ns ? wait_ns : n->heartbeat_ns);
}

void node_reported(struct node_agent *n, uint64_t seq, int status, const json_t *answer)
{
    if (!n->sending || seq != n->seq)
        return;
    n->sending = false;
    if (status == 200)
        on_report_accepted(n, answer);
    else if (is_superseded(status, answer))
        stop_superseded(n, answer);
    else
        refused(n, status);
    node_tick(n);
}
