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
static size_t place_of(const struct node *n, uint64_t id)
{
    return vec_place(&n->held, id, id);
}

struct held *held_find(const struct node *n, uint64_t id)
{
    size_t at = place_of(n, id);
    return at < n->held.len && n->held.at[at]->id == id ? n->held.at[at] : NULL;
}

struct held *held_add(struct node *n, uint64_t id, enum node_state state)
{
    struct held *h = mem_zalloc(sizeof *h);
    size_t at = place_of(n, id);
    *h = (struct held){.id = id, .state = state, .progress = -1, .exit = -1};
    vec_push(&n->held, h);
    memmove(&n->held.at[at + 1], &n->held.at[at], (n->held.len - 1 - at) * sizeof(struct held *));
    n->held.at[at] = h;
    return h;
}

static void held_free(struct held *h)
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

static void held_remove(struct node *n, struct held *h)
{
    size_t at = place_of(n, h->id);
    memmove(&n->held.at[at], &n->held.at[at + 1], (n->held.len - 1 - at) * sizeof(struct held *));
    n->held.len--;
    held_free(h);
}

void held_config(struct held *h, const json_t *config)
{
    json_decref(h->config);
    h->config = json_deep_copy(config);
    h->fence_ns = json_integer_value(json_object_get(config, "fence_ns"));
}

void held_changed(struct node *n, struct held *h)
{
    h->changed = ++n->changes;
    report_within(n, 0);
}

/* ---- stopping --------------------------------------------------------------------------------------------------- */

static void held_stop(struct node *n, struct held *h, bool now)
{
    if (h->forced || (h->asked && !now))
        return;
    h->asked = true;
    h->forced = now;
    if (h->state != NODE_STOPPING) {
        h->state = NODE_STOPPING;
        h->ready = false;
        held_changed(n, h);
    }
    n->machine->stop(n->machine_ctx, h->id, now);
    if (PLANTED(NODE_STOPPED_AT_ONCE))
        node_over(n, h->id, &(struct node_outcome){NODE_STOPPED, -1, NULL});
}

/* Tells whether the daemon was silent for the instance's fence time, after which it may place a replacement
 * elsewhere. */
static bool fence_due(const struct node *n, const struct held *h)
{
    return h->fence_ns && held_lives(h) && n->env.steady_ns(n->env.ctx) - n->heard_ns >= h->fence_ns;
}

bool held_settle(struct node *n, struct held *h)
{
    bool wanted = h->wanted || !n->configured || PLANTED(NODE_KEEPS_UNLISTED);
    if (held_lives(h)) {
        if (n->superseded || fence_due(n, h)) {
            if (!h->forced && !n->superseded)
                text_set(&h->error, "fenced: no contact with the daemon for the allowed time");
            held_stop(n, h, true);
        } else if (!wanted || h->unknown || (PLANTED(NODE_STOPS_IN_SILENCE) && n->failures > 3))
            held_stop(n, h, false);
        return false;
    }
    /* A listed instance stays recorded, so that it cannot start twice; an instance that was removed from the list is
     * never listed again. */
    bool listed = h->listed && !PLANTED(NODE_FORGETS_EARLY);
    if (!n->configured || listed || (h->changed > h->said && !h->unknown) || PLANTED(NODE_NEVER_FORGETS))
        return false;
    n->machine->forget(n->machine_ctx, h->id);
    held_remove(n, h);
    return true;
}

void node_settle(struct node *n)
{
    for (size_t i = 0; i < n->held.len;)
        i += held_settle(n, n->held.at[i]) ? 0 : 1;
}

/* ---- lifetime --------------------------------------------------------------------------------------------------- */

int node_new(const struct node_env *env, const struct node_machine *machine, void *machine_ctx,
             const struct node_options *options, struct node **ret, struct berth_err *err)
{
    if (!options->id || !*options->id || options->epoch == 0)
        return err_set(err, EINVAL, "an agent needs the id of its node and an epoch above 0");
    struct node *n = mem_zalloc(sizeof *n);
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

void node_free(struct node *n)
{
    if (!n)
        return;
    for (size_t i = 0; i < n->held.len; i++)
        held_free(n->held.at[i]);
    vec_done(&n->held);
    json_decref(n->self);
    json_decref(n->self_sent);
    json_decref(n->pending);
    mem_free(n->hash);
    mem_free(n->id);
    mem_free(n);
}

static void set_ports(struct held *h, const struct node_port *ports, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        struct held_port port = {mem_strdup(ports[i].endpoint), ports[i].port};
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

static void set_start(struct held *h, const struct node_start *start)
{
    set_ports(h, start->ports, start->ports_len);
    json_decref(h->exclusive);
    h->exclusive = json_deep_copy(start->exclusive);
    text_set(&h->unenforced, start->unenforced);
}

void node_found(struct node *n, uint64_t id, const json_t *config, const struct node_start *start)
{
    assert(!n->begun);
    if (PLANTED(NODE_ADOPTS_NOTHING))
        return;
    struct held *h = held_add(n, id, NODE_RUNNING);
    held_config(h, config);
    h->ready = !json_object_get(config, "health"); /* an awaited port may have accepted connections long ago */
    set_start(h, start);
    h->changed = ++n->changes;
}

void node_found_starting(struct node *n, uint64_t id, const json_t *config)
{
    assert(!n->begun);
    if (PLANTED(NODE_ADOPTS_NOTHING))
        return;
    struct held *h = held_add(n, id, NODE_STARTING);
    held_config(h, config);
    h->changed = ++n->changes;
}

static void set_outcome(struct held *h, const struct node_outcome *outcome)
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

void node_found_over(struct node *n, uint64_t id, const struct node_outcome *outcome)
{
    assert(!n->begun);
    if (PLANTED(NODE_FORGETS_ENDS))
        return;
    struct held *h = held_add(n, id, NODE_OVER);
    set_outcome(h, outcome);
    h->changed = ++n->changes;
}

void node_begin(struct node *n)
{
    n->begun = true;
    if (n->heard_ns == 0) /* no earlier contact is recorded: fence times count from now */
        n->heard_ns = n->env.steady_ns(n->env.ctx);
    report_within(n, 0);
    node_tick(n);
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

void node_started(struct node *n, uint64_t id, const struct node_start *start)
{
    struct held *h = held_find(n, id);
    if (!h || !held_lives(h))
        return;
    set_start(h, start);
    if (h->state == NODE_STARTING) {
        h->state = NODE_RUNNING;
        h->ready = ready_at_start(h->config);
    }
    held_changed(n, h);
    report_tick(n);
}

void node_health(struct node *n, uint64_t id, bool ready, const char *text)
{
    struct held *h = held_find(n, id);
    if (!h || h->state != NODE_RUNNING || (h->ready == ready && text_same(h->error, text)))
        return;
    h->ready = ready;
    text_set(&h->error, text);
    held_changed(n, h);
    report_tick(n);
}

void node_over(struct node *n, uint64_t id, const struct node_outcome *outcome)
{
    struct held *h = held_find(n, id);
    if (!h || !held_lives(h))
        return;
    set_outcome(h, outcome);
    if (!PLANTED(NODE_KEEPS_END))
        held_changed(n, h);
    log_write(n->env.log, n->env.clock_ns(n->env.ctx), LEVEL_INFO, "instance.over", LOG_NUMBER("id", (int64_t)id),
              LOG_NUMBER("exit", h->exit), LOG_TEXT("text", h->error));
    (void)held_settle(n, h);
    report_tick(n);
}

static struct held_use *use_put(struct held *h, const char *resource, int64_t amount)
{
    size_t at = 0;
    while (at < h->use.len && strcmp(h->use.at[at].resource, resource) != 0)
        at++;
    if (at == h->use.len) {
        struct held_use use = {.resource = mem_strdup(resource), .sent = -1, .said = -1};
        vec_push(&h->use, use);
    }
    h->use.at[at].now = amount;
    return &h->use.at[at];
}

void node_usage(struct node *n, uint64_t id, const struct berth_amount *usage, size_t usage_len)
{
    struct held *h = held_find(n, id);
    for (size_t i = 0; h && held_lives(h) && i < usage_len; i++)
        (void)use_put(h, usage[i].resource, usage[i].amount);
}

void node_spent(struct node *n, uint64_t id, const char *resource, int64_t amount)
{
    struct held *h = held_find(n, id);
    if (h)
        use_put(h, resource, amount)->spent = true;
}

void node_progress(struct node *n, uint64_t id, int done_milli, const char *text)
{
    struct held *h = held_find(n, id);
    if (!h || !held_lives(h) || (h->progress == done_milli && text_same(h->note, text)))
        return;
    h->progress = done_milli;
    text_set(&h->note, text);
    h->changed = ++n->changes;
    report_within(n, PROGRESS_NS);
    report_tick(n);
}

void node_trouble(struct node *n, uint64_t id, const char *unenforced, const char *over)
{
    struct held *h = held_find(n, id);
    if (!h || !held_lives(h) || (text_same(h->unenforced, unenforced) && text_same(h->over, over)))
        return;
    text_set(&h->unenforced, unenforced);
    text_set(&h->over, over);
    held_changed(n, h);
    report_tick(n);
}

void node_foreign_port(struct node *n, uint64_t id, uint16_t port)
{
    struct held *h = held_find(n, id);
    if (!h || !held_lives(h) || h->foreign_port == port)
        return;
    h->foreign_port = port;
    held_changed(n, h);
    report_tick(n);
}

/* The inventory ("probed") is sent seldom, usage often: a newer object without inventory must not drop an unsent
 * one. */
void self_keep(struct node *n, json_t *older)
{
    json_t *probed = json_object_get(older, "probed");
    if (!n->self)
        n->self = take_ptr(&older);
    else if (probed && !json_object_get(n->self, "probed"))
        (void)json_object_set(n->self, "probed", probed);
    json_decref(older);
}

void node_self(struct node *n, json_t *self)
{
    json_t *older = n->self;
    n->self = self;
    self_keep(n, older);
}

/* Returns when the next fence time ends without further contact; INT64_MAX: never. */
static int64_t next_fence_ns(const struct node *n)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < n->held.len; i++) {
        const struct held *h = n->held.at[i];
        if (h->fence_ns && held_lives(h) && !h->forced && n->heard_ns + h->fence_ns < next)
            next = n->heard_ns + h->fence_ns;
    }
    return next;
}

void node_tick(struct node *n)
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

static void see(const struct held *h, struct node_seen *ret)
{
    *ret = (struct node_seen){.id = h->id, .state = h->state, .ready = h->ready, .config = h->config};
}

bool node_at(const struct node *n, size_t i, struct node_seen *ret)
{
    if (i >= n->held.len)
        return false;
    see(n->held.at[i], ret);
    return true;
}

bool node_find(const struct node *n, uint64_t id, struct node_seen *ret)
{
    const struct held *h = held_find(n, id);
    if (h)
        see(h, ret);
    return h != NULL;
}
