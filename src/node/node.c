#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/plant.h"
#include "node/node_parts.h"

#define HEARTBEAT_NS_FIRST (5 * NODE_SECOND)
#define PROGRESS_NS NODE_SECOND

static void text_set(char **to, const char *text)
{
    mem_free(*to);
    *to = text && *text ? mem_strdup(text) : NULL;
}

static bool text_same(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

/* ---- list of instances ------------------------------------------------------------------------------------------ */

/* Returns the index of this id, or the index to insert it at. */
static size_t index_of(const struct node_agent *n, uint64_t id)
{
    return vec_lower_bound(&n->node_instance, id, id);
}

struct node_instance *node_instance_find(const struct node_agent *n, uint64_t id)
{
    size_t at = index_of(n, id);
    return at < n->node_instance.len && n->node_instance.at[at]->id == id ? n->node_instance.at[at] : NULL;
}

struct node_instance *node_instance_add(struct node_agent *n, uint64_t id, enum node_state state)
{
    struct node_instance *h = mem_zalloc(sizeof *h);
    size_t at = index_of(n, id);
    *h = (struct node_instance){.id = id, .state = state, .progress = -1, .exit = -1};
    vec_push(&n->node_instance, h);
    memmove(&n->node_instance.at[at + 1], &n->node_instance.at[at],
            (n->node_instance.len - 1 - at) * sizeof(struct node_instance *));
    n->node_instance.at[at] = h;
    return h;
}

static void node_instance_free(struct node_instance *h)
{
    for (size_t i = 0; i < h->ports.len; i++)
        mem_free(h->ports.at[i].endpoint);
    vec_done(&h->ports);
    for (size_t i = 0; i < h->use.len; i++)
        mem_free(h->use.at[i].resource);
    vec_done(&h->use);
    json_decref(h->config);
    json_decref(h->exclusive);
    mem_free(h->note);
    mem_free(h->unenforced);
    mem_free(h->over);
    mem_free(h->error);
    mem_free(h);
}

static void node_instance_remove(struct node_agent *n, struct node_instance *h)
{
    size_t at = index_of(n, h->id);
    memmove(&n->node_instance.at[at], &n->node_instance.at[at + 1],
            (n->node_instance.len - 1 - at) * sizeof(struct node_instance *));
    n->node_instance.len--;
    node_instance_free(h);
}

void node_instance_set_config(struct node_instance *h, const json_t *config)
{
    json_decref(h->config);
    h->config = json_deep_copy(config);
    h->fence_ns = json_integer_value(json_object_get(config, "fence_ns"));
}

void node_instance_changed(struct node_agent *n, struct node_instance *h)
{
    h->changed = ++n->changes;
    report_within(n, 0);
}

/* ---- stopping --------------------------------------------------------------------------------------------------- */

static void node_instance_stop(struct node_agent *n, struct node_instance *h, bool now)
{
    if (h->forced || (h->asked && !now))
        return;
    h->asked = true;
    h->forced = now;
    if (h->state != NODE_STOPPING) {
        h->state = NODE_STOPPING;
        h->ready = false;
        node_instance_changed(n, h);
    }
    n->machine->stop(n->machine_ctx, h->id, now);
    if (PLANTED(NODE_STOPPED_AT_ONCE))
        node_instance_ended(n, h->id, &(struct node_outcome){NODE_STOPPED, -1, NULL});
}

/* Tells whether the daemon was silent for the instance's fence time, after which it may place a replacement
 * elsewhere. */
static bool fence_due(const struct node_agent *n, const struct node_instance *h)
{
    return h->fence_ns && node_instance_is_alive(h) && n->env.steady_ns(n->env.ctx) - n->heard_ns >= h->fence_ns;
}

bool node_instance_settle(struct node_agent *n, struct node_instance *h)
{
    bool wanted = h->wanted || !n->configured || PLANTED(NODE_KEEPS_UNLISTED);
    if (node_instance_is_alive(h)) {
        if (n->superseded || fence_due(n, h)) {
            if (!h->forced && !n->superseded)
                text_set(&h->error, "fenced: no contact with the daemon for the allowed time");
            node_instance_stop(n, h, true);
        } else if (!wanted || h->unknown || (PLANTED(NODE_STOPS_IN_SILENCE) && n->failures > 3))
            node_instance_stop(n, h, false);
        return false;
    }
    /* A listed instance stays recorded, so that it cannot start twice; an instance that was removed from the list is
     * never listed again. */
    bool listed = h->listed && !PLANTED(NODE_FORGETS_EARLY);
    if (!n->configured || listed || (h->changed > h->said && !h->unknown) || PLANTED(NODE_NEVER_FORGETS))
        return false;
    n->machine->forget(n->machine_ctx, h->id);
    node_instance_remove(n, h);
    return true;
}

void node_settle(struct node_agent *n)
{
    for (size_t i = 0; i < n->node_instance.len;)
        i += node_instance_settle(n, n->node_instance.at[i]) ? 0 : 1;
}

/* ---- lifetime --------------------------------------------------------------------------------------------------- */

int node_new(const struct node_env *env, const struct node_machine *machine, void *machine_ctx,
             const struct node_options *options, struct node_agent **ret, struct berth_err *err)
{
    if (!options->id || !*options->id || options->epoch == 0)
        return err_set(err, EINVAL, "an agent needs the id of its node and an epoch above 0");
    struct node_agent *n = mem_zalloc(sizeof *n);
    n->env = *env;
    n->machine = machine;
    n->machine_ctx = machine_ctx;
    n->id = mem_strdup(options->id);
    n->epoch = options->epoch;
    n->heard_ns = options->heard_ns;
    n->heartbeat_given = options->heartbeat_ns != 0;
    n->heartbeat_ns = n->heartbeat_given ? options->heartbeat_ns : HEARTBEAT_NS_FIRST;
    n->next_ns = INT64_MAX;
    *ret = n;
    return 0;
}

void node_free(struct node_agent *n)
{
    if (!n)
        return;
    for (size_t i = 0; i < n->node_instance.len; i++)
        node_instance_free(n->node_instance.at[i]);
    vec_done(&n->node_instance);
    json_decref(n->self);
    json_decref(n->self_sent);
    json_decref(n->pending);
    mem_free(n->hash);
    mem_free(n->id);
    mem_free(n);
}

static void set_ports(struct node_instance *h, const struct node_port *ports, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        struct node_instance_port port = {mem_strdup(ports[i].endpoint), ports[i].port};
        vec_push(&h->ports, port);
    }
}

/* Tells whether an instance with this configuration is ready as soon as it runs: it has no health check and no awaited
 * port. */
static bool ready_at_start(const json_t *config)
{
    const json_t *port;
    size_t i;
    if (json_object_get(config, "health"))
        return false;
    json_array_foreach(json_object_get(config, "ports"), i, port)
    {
        if (json_is_true(json_object_get(port, "await")))
            return false;
    }
    return true;
}

static void set_start(struct node_instance *h, const struct node_start *start)
{
    set_ports(h, start->ports, start->ports_len);
    json_decref(h->exclusive);
    h->exclusive = json_deep_copy(start->exclusive);
    text_set(&h->unenforced, start->unenforced);
}

void node_adopt(struct node_agent *n, uint64_t id, const json_t *config, const struct node_start *start)
{
    assert(!n->begun);
    if (PLANTED(NODE_ADOPTS_NOTHING))
        return;
    struct node_instance *h = node_instance_add(n, id, NODE_RUNNING);
    node_instance_set_config(h, config);
    h->ready = !json_object_get(config, "health"); /* an awaited port may have accepted connections long ago */
    set_start(h, start);
    h->changed = ++n->changes;
}

void node_adopt_starting(struct node_agent *n, uint64_t id, const json_t *config)
{
    assert(!n->begun);
    if (PLANTED(NODE_ADOPTS_NOTHING))
        return;
    struct node_instance *h = node_instance_add(n, id, NODE_STARTING);
    node_instance_set_config(h, config);
    h->changed = ++n->changes;
}

static void set_outcome(struct node_instance *h, const struct node_outcome *outcome)
{
    h->state = NODE_OVER;
    h->ready = false;
    h->end = h->asked ? NODE_STOPPED : outcome->end; /* regardless of how it reacted to the stop */
    h->exit = outcome->exit;
    h->oom_killed = outcome->oom_killed;
    if (outcome->text)
        text_set(&h->error, outcome->text);
    else if (outcome->end == NODE_ENDED)
        text_set(&h->error, NULL);
}

void node_adopt_ended(struct node_agent *n, uint64_t id, const struct node_outcome *outcome)
{
    assert(!n->begun);
    if (PLANTED(NODE_FORGETS_ENDS))
        return;
    struct node_instance *h = node_instance_add(n, id, NODE_OVER);
    set_outcome(h, outcome);
    h->changed = ++n->changes;
}

void node_begin(struct node_agent *n)
{
    n->begun = true;
    if (n->heard_ns == 0) /* no earlier contact is recorded: fence times count from now */
        n->heard_ns = n->env.steady_ns(n->env.ctx);
    report_within(n, 0);
    node_tick(n);
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

void node_started(struct node_agent *n, uint64_t id, const struct node_start *start)
{
    struct node_instance *h = node_instance_find(n, id);
    if (!h || !node_instance_is_alive(h))
        return;
    set_start(h, start);
    if (h->state == NODE_STARTING) {
        h->state = NODE_RUNNING;
        h->ready = ready_at_start(h->config);
    }
    node_instance_changed(n, h);
    report_tick(n);
}

void node_health(struct node_agent *n, uint64_t id, bool ready, const char *text)
{
    struct node_instance *h = node_instance_find(n, id);
    if (!h || h->state != NODE_RUNNING || (h->ready == ready && text_same(h->error, text)))
        return;
    h->ready = ready;
    text_set(&h->error, text);
    node_instance_changed(n, h);
    report_tick(n);
}

void node_instance_ended(struct node_agent *n, uint64_t id, const struct node_outcome *outcome)
{
    struct node_instance *h = node_instance_find(n, id);
    if (!h || !node_instance_is_alive(h))
        return;
    set_outcome(h, outcome);
    if (!PLANTED(NODE_KEEPS_END))
        node_instance_changed(n, h);
    log_write(n->env.log, n->env.clock_ns(n->env.ctx), LEVEL_INFO, "instance.over", LOG_NUMBER("id", (int64_t)id),
              LOG_NUMBER("exit", h->exit), LOG_TEXT("text", h->error));
    (void)node_instance_settle(n, h);
    report_tick(n);
}

static struct node_instance_usage *use_put(struct node_instance *h, const char *resource, int64_t amount)
{
    size_t at = 0;
    while (at < h->use.len && strcmp(h->use.at[at].resource, resource) != 0)
        at++;
    if (at == h->use.len) {
        struct node_instance_usage use = {.resource = mem_strdup(resource), .sent = -1, .said = -1};
        vec_push(&h->use, use);
    }
    h->use.at[at].now = amount;
    return &h->use.at[at];
}

void node_usage(struct node_agent *n, uint64_t id, const struct berth_amount *usage, size_t usage_len)
{
    struct node_instance *h = node_instance_find(n, id);
    for (size_t i = 0; h && node_instance_is_alive(h) && i < usage_len; i++)
        (void)use_put(h, usage[i].resource, usage[i].amount);
}

void node_total_usage(struct node_agent *n, uint64_t id, const char *resource, int64_t amount)
{
    struct node_instance *h = node_instance_find(n, id);
    if (h)
        use_put(h, resource, amount)->spent = true;
}

void node_progress(struct node_agent *n, uint64_t id, int done_milli, const char *text)
{
    struct node_instance *h = node_instance_find(n, id);
    if (!h || !node_instance_is_alive(h) || (h->progress == done_milli && text_same(h->note, text)))
        return;
    h->progress = done_milli;
    text_set(&h->note, text);
    h->changed = ++n->changes;
    report_within(n, PROGRESS_NS);
    report_tick(n);
}

void node_limit_state(struct node_agent *n, uint64_t id, const char *unenforced, const char *over)
{
    struct node_instance *h = node_instance_find(n, id);
    if (!h || !node_instance_is_alive(h) || (text_same(h->unenforced, unenforced) && text_same(h->over, over)))
        return;
    text_set(&h->unenforced, unenforced);
    text_set(&h->over, over);
    node_instance_changed(n, h);
    report_tick(n);
}

void node_foreign_port(struct node_agent *n, uint64_t id, uint16_t port)
{
    struct node_instance *h = node_instance_find(n, id);
    if (!h || !node_instance_is_alive(h) || h->foreign_port == port)
        return;
    h->foreign_port = port;
    node_instance_changed(n, h);
    report_tick(n);
}

/* The inventory ("probed") is sent seldom, usage often: a newer object without inventory must not drop an unsent
 * one. */
void machine_state_merge(struct node_agent *n, json_t *older)
{
    json_t *probed = json_object_get(older, "probed");
    if (!n->self)
        n->self = take_ptr(&older);
    else if (probed && !json_object_get(n->self, "probed"))
        (void)json_object_set(n->self, "probed", probed);
    json_decref(older);
}

void node_machine_state(struct node_agent *n, json_t *self)
{
    json_t *older = n->self;
    n->self = self;
    machine_state_merge(n, older);
}

/* Returns when the next fence time ends without further contact; INT64_MAX: never. */
static int64_t next_fence_ns(const struct node_agent *n)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < n->node_instance.len; i++) {
        const struct node_instance *h = n->node_instance.at[i];
        if (h->fence_ns && node_instance_is_alive(h) && !h->forced && n->heard_ns + h->fence_ns < next)
            next = n->heard_ns + h->fence_ns;
    }
    return next;
}

void node_tick(struct node_agent *n)
{
    if (!n->begun)
        return;
    node_settle(n);
    report_tick(n);
    int64_t fence_ns = next_fence_ns(n);
    if (fence_ns != INT64_MAX)
        n->env.wake_at(n->env.ctx, fence_ns);
}

/* ---- queries ---------------------------------------------------------------------------------------------------- */

static void view_fill(const struct node_instance *h, struct node_instance_view *ret)
{
    *ret = (struct node_instance_view){.id = h->id, .state = h->state, .ready = h->ready, .config = h->config};
}

bool node_at(const struct node_agent *n, size_t i, struct node_instance_view *ret)
{
    if (i >= n->node_instance.len)
        return false;
    view_fill(n->node_instance.at[i], ret);
    return true;
}

bool node_find(const struct node_agent *n, uint64_t id, struct node_instance_view *ret)
{
    const struct node_instance *h = node_instance_find(n, id);
    if (h)
        view_fill(h, ret);
    return h != NULL;
}
