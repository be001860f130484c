#include "control/node/lease.h"

#include <string.h>

#include "base/hash.h"
#include "base/plant.h"
#include "control/control_parts.h"
#include "control/state/commit.h"
#include "wire/doc/api.h"

#define SECOND INT64_C(1000000000)
/* Leases are checked every second. A longer gap means that the daemon was suspended: a gap of half a lease, within
 * these bounds. */
#define AWAY_MIN (3 * SECOND / 2)
#define AWAY_MAX (5 * SECOND)

struct node_lease {
    char *node;
    uint64_t created_revision; /* revision that created the node */
    uint64_t epoch, seq;
    int64_t heard_ns; /* steady time */
    bool told;        /* the loss is recorded, or its record is being written */
    bool granted;     /* granted by this daemon, and no report since */
};

struct node_leases {
    int64_t looked_ns; /* steady time of the last check; 0: never */
    struct map map;
    VEC(struct node_lease) at;
};

struct node_leases *leases_new(void)
{
    return mem_zalloc(sizeof(struct node_leases));
}

void leases_free(struct node_leases *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->at.len; i++)
        mem_free(l->at.at[i].node);
    vec_done(&l->at);
    map_done(&l->map);
    mem_free(l);
}

static bool same_node(const void *ctx, uint32_t at, const void *node)
{
    return strcmp(((const struct node_leases *)ctx)->at.at[at].node, node) == 0;
}

static struct node_lease *find(const struct node_leases *l, const char *node)
{
    uint32_t at = map_find(&l->map, hash_bytes(node, strlen(node), 0), same_node, l, node);
    return at == MAP_NONE ? NULL : &l->at.at[at];
}

void lease_note_report(struct node_leases *l, const struct object *node, uint64_t epoch, uint64_t seq,
                       int64_t steady_ns)
{
    struct node_lease *lease = find(l, node->id);
    if (!lease) {
        struct node_lease fresh = {.node = mem_strdup(node->id)};
        map_add(&l->map, hash_bytes(node->id, strlen(node->id), 0), (uint32_t)l->at.len);
        vec_push(&l->at, fresh);
        lease = &l->at.at[l->at.len - 1];
    }
    lease->created_revision = node->created;
    lease->epoch = epoch;
    lease->seq = seq;
    lease->heard_ns = steady_ns;
    lease->told = lease->granted = false;
}

bool lease_last(const struct node_leases *l, const struct object *node, uint64_t *ret_epoch, uint64_t *ret_seq)
{
    const struct node_lease *lease = find(l, node->id);
    /* If the lease was only granted, or the first report could not be written, the epoch counts. */
    if (!lease || lease->created_revision != node->created)
        return false;
    *ret_epoch = lease->epoch;
    *ret_seq = lease->seq;
    return true;
}

/* Grants a fresh lease to nodes with an agent that has not reported since this daemon started. */
static void grant(struct control *c, int64_t steady_ns)
{
    size_t len;
    const struct object *const *nodes = state_list(c->state, KIND_NODE, &len);
    for (size_t i = 0; i < len; i++) {
        const struct node_lease *lease = nodes[i]->node->epoch ? find(c->leases, nodes[i]->id) : NULL;
        if (!nodes[i]->node->epoch || (lease && lease->created_revision == nodes[i]->created))
            continue;
        int64_t heard_ns = PLANTED(LEASE_NOT_GRANTED) ? steady_ns - c->in_force.lease_ns : steady_ns;
        lease_note_report(c->leases, nodes[i], nodes[i]->node->epoch, 0, heard_ns);
        find(c->leases, nodes[i]->id)->granted = true;
    }
}

static void on_loss_written(void *ctx, const struct store_result *result)
{
    struct control *c = ctx;
    if (result->rc != 0) /* check again: the node may have changed at that moment */
        for (size_t i = 0; i < c->leases->at.len; i++)
            c->leases->at.at[i].told = false;
}

static void on_loss_rewritten(void *ctx, const struct store_result *result)
{
    struct control *c = ctx;
    for (size_t i = 0; result->rc != 0 && i < c->leases->at.len; i++)
        c->leases->at.at[i].granted = c->leases->at.at[i].seq == 0;
}

/* Records a node as lost since now if it was lost before this daemon started. Only the wall clock knows how long the
 * daemon was down, and the clock may have jumped; so no fence ends early. */
static bool rewrite_loss(struct control *c, const struct object *node)
{
    struct arena arena;
    struct change change;
    char since[TIMESTAMP_MAX];
    struct berth_err err;
    arena_init(&arena);
    change_init(&change, c->state, &arena);
    json_t *doc = change_edit(&change, KIND_NODE, node->id);
    (void)json_object_set_new(doc, "since", json_string(timestamp_text(control_now_ns(c), since)));
    struct commit_note note = {
        .who = "berth", .verb = "node.still-lost", .subject = arena_fmt(&arena, "nodes/%s", node->id)};
    int rc = commit_submit(c, &change, &note, on_loss_rewritten, c, &err);
    change_done(&change);
    arena_done(&arena);
    return rc >= 0;
}

/* Records the node as lost. The record has the number of the last report, so that an earlier report that arrives late,
 * even after a restart, does not bring the node back. */
static bool write_loss(struct control *c, const struct object *node, const struct node_lease *lease, int64_t silent_ns)
{
    struct arena arena;
    struct change change;
    char since[TIMESTAMP_MAX];
    int64_t now_ns = control_now_ns(c);
    arena_init(&arena);
    change_init(&change, c->state, &arena);
    json_t *doc = change_edit(&change, KIND_NODE, node->id);
    (void)json_object_set_new(doc, "was", json_string(berth_node_state_name(node->node->state)));
    (void)json_object_set_new(doc, "state", json_string("lost"));
    (void)json_object_set_new(doc, "since", json_string(timestamp_text(now_ns, since)));
    if (lease->seq && lease->epoch == node->node->epoch)
        (void)json_object_set_new(doc, "seq", json_integer((json_int_t)lease->seq));
    struct commit_note note = {.who = "berth", .verb = "node.lost", .subject = arena_fmt(&arena, "nodes/%s", node->id)};
    struct berth_err err;
    int rc = commit_submit(c, &change, &note, on_loss_written, c, &err);
    if (rc < 0)
        log_write(c->env.log, now_ns, LEVEL_ERROR, "node.lost.unwritten", LOG_TEXT("node", node->id),
                  LOG_TEXT("text", err.text));
    log_write(c->env.log, now_ns, LEVEL_WARN, "node.lost", LOG_TEXT("node", node->id),
              LOG_NUMBER("silent_s", silent_ns / SECOND));
    struct object_event event = {.type = "NodeLost", .kind = KIND_NODE, .id = node->id, .message = "no report in time"};
    events_add(c->events, now_ns, &event);
    change_done(&change);
    arena_done(&arena);
    return rc >= 0;
}

int64_t leases_expire(struct control *c, int64_t steady_ns)
{
    int64_t lease_ns = c->in_force.lease_ns, next = INT64_MAX;
    grant(c, steady_ns);
    /* A daemon that was itself suspended (stopped, swapped out) received no reports: the leases are extended by that
     * time. */
    int64_t away_ns = c->leases->looked_ns ? steady_ns - c->leases->looked_ns : 0;
    int64_t much_ns = lease_ns / 2 < AWAY_MIN ? AWAY_MIN : lease_ns / 2 > AWAY_MAX ? AWAY_MAX : lease_ns / 2;
    if (away_ns > much_ns)
        for (size_t i = 0; i < c->leases->at.len; i++)
            c->leases->at.at[i].heard_ns += away_ns;
    c->leases->looked_ns = steady_ns;
    for (size_t i = 0; i < c->leases->at.len; i++) {
        struct node_lease *lease = &c->leases->at.at[i];
        const struct object *node = state_find(c->state, KIND_NODE, lease->node);
        if (!node || node->created != lease->created_revision || lease->told)
            continue;
        if (node->node->state == BERTH_NODE_LOST) {
            lease->granted = lease->granted && !rewrite_loss(c, node);
            continue;
        }
        int64_t end_ns = lease->heard_ns + lease_ns / (PLANTED(LEASE_SHORT) ? 2 : 1);
        if (end_ns > steady_ns) {
            next = end_ns < next ? end_ns : next;
            continue;
        }
        lease->told = write_loss(c, node, lease, steady_ns - lease->heard_ns);
    }
    return next;
}
