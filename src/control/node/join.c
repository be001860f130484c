#include "control/node/join.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "control/control_parts.h"
#include "control/system/settings_table.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/moment.h"
#include "wire/text/words.h"

enum { ADDRESSES_BYTES_MAX = 1024 };
#define SECOND_NS INT64_C(1000000000)
#define HOUR_NS (3600 * SECOND_NS)

/* Returns -ENOSPC if this daemon accepts no agents. */
static int agents_ready(struct request *c)
{
    if (c->control->agents.sign)
        return 0;
    return err_set(&c->err, ENOSPC, "this berthd does not accept agents; start it with --agents ADDRESS:PORT");
}

/* ---- addresses -------------------------------------------------------------------------------------------------- */

int agent_addresses_check(const char *text, struct berth_err *err)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:/[]-_,";
    static const char scheme[] = "https://";
    char shown[QUOTE_MAX];
    bool good = strlen(text) <= ADDRESSES_BYTES_MAX && strspn(text, safe) == strlen(text);
    for (const char *at = text; good && *at; at += strcspn(at, ","), at += *at == ',')
        good = strncmp(at, scheme, strlen(scheme)) == 0 && strcspn(at, ",") > strlen(scheme);
    if (good && (!*text || text[strlen(text) - 1] != ','))
        return 0;
    return err_set(err, EINVAL,
                   "agent_addresses: expected addresses like https://HOST:3981,https://OTHER:3981, "
                   "found %s",
                   quote(text, shown));
}

static const char *addresses(struct request *c)
{
    const char *set = system_setting_text(c->state, SETTING_AGENT_ADDRESSES, &c->arena);
    return *set ? set : c->control->agents.addresses;
}

static json_t *address_list(const char *text)
{
    json_t *list = json_array();
    for (const char *at = text; *at; at += strcspn(at, ","), at += *at == ',')
        (void)json_array_append_new(list, json_stringn(at, strcspn(at, ",")));
    return list;
}

/* ---- invitations ------------------------------------------------------------------------------------------------ */

/* Gets the end of the invitation: the body's `expires`, else as the settings say. */
static int invitation_end(struct request *c, int64_t *ret_ns)
{
    const json_t *given = json_object_get(c->body, "expires");
    int64_t life_ns = system_setting_number(c->state, SETTING_INVITATION_LIFE_S) * SECOND_NS;
    const int64_t most_ns = 30 * 24 * HOUR_NS;
    if (given && !json_is_null(given)) {
        int rc = duration_parse(given, &life_ns, &c->err);
        if (rc < 0)
            return err_prefix(&c->err, "expires");
    }
    if (life_ns <= 0 || life_ns > most_ns)
        return err_set(&c->err, EINVAL, "expires: expected a time of up to 30 days, like 1h");
    *ret_ns = c->now_ns + life_ns;
    return 0;
}

/* Rejects a name that differs from an existing node's in case only: it may be meant for another machine, whose
 * invitation would end that of the node. The name with which the node was created is accepted. */
static int name_case_check(struct request *c, const char *id)
{
    char shown[QUOTE_MAX];
    const char *called = json_string_value(json_object_get(change_read(&c->change, KIND_NODE, id), "display"));
    if (strcmp(c->args[0], id) == 0 || (called && strcmp(c->args[0], called) == 0))
        return 0;
    return err_set(&c->err, EEXIST,
                   "node %s already exists, and %s differs only in upper and lower case; choose another name", id,
                   quote(c->args[0], shown));
}

/* Creates a missing node from the rest of the body, in state joining. An existing node is not changed. */
static int node_ensure(struct request *c, const char **ret_id, bool *ret_new)
{
    CLEANUP(json) json_t *doc = json_copy((json_t *)c->body);
    int rc = crud_id(c, KIND_NODE, c->args[0], ret_id);
    if (rc < 0)
        return rc;
    (void)json_object_del(doc, "expires");
    if (json_object_get(doc, "id") || json_object_get(doc, "state"))
        return err_set(&c->err, EINVAL, "id and state: not allowed; the path names the node, and its state is joining");
    *ret_new = !change_read(&c->change, KIND_NODE, *ret_id);
    if (!*ret_new && (rc = name_case_check(c, *ret_id)) < 0)
        return rc;
    if (!*ret_new && json_object_size(doc))
        return err_set(&c->err, EEXIST,
                       "node %s already exists; change it with 'berth edit'; an invitation of an existing node "
                       "accepts only `expires`",
                       *ret_id);
    if (!*ret_new)
        return 0;
    (void)json_object_set_new(doc, "state", json_string("joining"));
    return crud_put(c, &node_crud, c->args[0], doc, CRUD_CREATE, ret_id, ret_new);
}

/* Revokes earlier invitations of the node: only the last one is valid. */
static void revoke_invitations(struct request *c, const char *node)
{
    size_t len;
    const struct object *const *list = state_list(c->state, KIND_TOKEN, &len);
    for (size_t i = 0; i < len; i++)
        if (strcmp(list[i]->token->node, node) == 0 && strcmp(list[i]->token->role, INVITATION_ROLE) == 0)
            change_delete(&c->change, KIND_TOKEN, list[i]->id);
}

static json_t *invitation_answer(struct request *c, const char *id, const char *token, int64_t expires_ns)
{
    char until[TIMESTAMP_MAX];
    const char *where = addresses(c);
    const char *quoted = strchr(where, '[') ? "'" : ""; /* the shell does not interpret the other characters */
    /* echo is a builtin of the shell: the token appears in no process list. */
    const char *command = arena_fmt(&c->arena, "echo %s | berth-agent join --control %s%s%s --pin %s --token-file -",
                                    token, quoted, where, quoted, c->control->agents.pin);
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s}", "node", id, "token", token, "expires",
                     timestamp_text(expires_ns, until), "pin", c->control->agents.pin, "addresses", address_list(where),
                     "command", command);
}

int node_invite(struct request *c)
{
    char text[TOKEN_TEXT_MAX];
    unsigned char random[40];
    const char *node = NULL, *id = NULL;
    int64_t expires_ns = 0;
    bool is_new = false;
    if (c->input->idempotency_key)
        return err_set(
            &c->err, EINVAL,
            "Idempotency-Key: not allowed for invitations: the response is secret and is not stored; send the "
            "request again instead");
    int rc = agents_ready(c);
    if (rc == 0)
        rc = invitation_end(c, &expires_ns);
    if (rc == 0)
        rc = node_ensure(c, &node, &is_new);
    if (rc != 0)
        return rc;
    const struct control_env *env = control_env(c->control);
    env->random(env->ctx, random, sizeof random);
    revoke_invitations(c, node);
    json_t *doc = token_make(random, "", node, INVITATION_ROLE, "to join", c->now_ns, expires_ns, text, &id, &c->arena);
    change_put(&c->change, KIND_TOKEN, id, doc);
    (void)change_guard(&c->change, KIND_NODE, node);
    c->change.verb = "node.invite";
    c->change.subject = arena_fmt(&c->arena, "nodes/%s", node);
    c->answer.status = 201;
    const char *shown = arena_fmt(&c->arena, INVITATION_PREFIX "%s", text + strlen(TOKEN_PREFIX));
    c->answer.body = c->dry_run ? json_object() : invitation_answer(c, node, shown, expires_ns);
    sodium_memzero(random, sizeof random);
    sodium_memzero(text, sizeof text);
    return 0;
}

/* ---- certificates ----------------------------------------------------------------------------------------------- */

/* Signs the key of a certificate request. *ret is a new reference. */
static int certify(struct request *c, const char *node, uint64_t joined, const json_t *request, json_t **ret)
{
    CLEANUP(mem) char *cert = NULL;
    const char *pem = json_string_value(request);
    const struct control_agents *agents = &c->control->agents;
    if (!pem)
        return err_set(&c->err, EINVAL, "request: expected a certificate request in PEM");
    int64_t life_ns = system_setting_number(c->state, SETTING_CERTIFICATE_LIFE_S) * SECOND_NS;
    const int64_t long_ago_ns =
        3650 * 24 * HOUR_NS; /* clocks may go back; the serial number proves when the certificate was issued */
    int64_t wall_ns = control_wall_ns(c->control);
    const struct agent_grant grant = {
        .name = arena_fmt(&c->arena, "node:%s", node),
        .joined = joined,
        .not_before_ns = wall_ns > long_ago_ns ? wall_ns - long_ago_ns : 0,
        .not_after_ns = wall_ns + life_ns,
    };
    int rc = agents->sign(agents->ctx, &grant, pem, &cert, &c->err);
    if (rc == 0)
        *ret = json_string(cert);
    return rc;
}

int node_certificate(struct request *c)
{
    json_t *certificate = NULL;
    const char *id = NULL;
    int rc = crud_id(c, KIND_NODE, c->args[0], &id);
    const struct object *node = rc == 0 ? state_find(c->state, KIND_NODE, id) : NULL;
    if (!node || !permit(&c->caller, PERMIT_REPORT, node->id, ""))
        return crud_not_found(c, KIND_NODE, c->args[0]);
    if (strcmp(c->caller.node, node->id) != 0)
        return err_set(&c->err, EACCES,
                       "only the agent of a node can renew its certificate; create a new invitation with 'berth "
                       "node add %s'",
                       node->id);
    if (!node->node->joined)
        return err_set(&c->err, EBUSY, "node %s has not joined; invite it with 'berth node add %s'", node->id,
                       node->id);
    rc = agents_ready(c);
    if (rc == 0)
        rc = certify(c, node->id, node->node->joined, json_object_get(c->body, "request"), &certificate);
    if (rc < 0)
        return rc;
    c->answer.body =
        json_pack("{s:s, s:o, s:s}", "node", node->id, "certificate", certificate, "ca", c->control->agents.ca_pem);
    return 0;
}

/* ---- joining ---------------------------------------------------------------------------------------------------- */

static int refused(struct request *c)
{
    metric_add(c->control->metrics, METRIC_AUTH_FAILURES, 0, 1);
    return err_set(&c->err, EPERM,
                   "this invitation is invalid, used or expired; create a new one with 'berth node add NAME'");
}

static int body_check(struct request *c)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)c->body, key, value)
    {
        char shown[QUOTE_MAX];
        if (strcmp(key, "token") != 0 && strcmp(key, "request") != 0 && strcmp(key, "probed") != 0)
            return err_set(&c->err, EINVAL, "unknown key %s; expected token, request and probed", quote(key, shown));
    }
    if (c->dry_run || c->input->idempotency_key)
        return err_set(&c->err, EINVAL,
                       "joining supports neither dry_run nor Idempotency-Key: an invitation can "
                       "be used only once");
    if (!json_is_string(json_object_get(c->body, "token")))
        return err_set(&c->err, EINVAL, "token: expected an invitation");
    return probed_check(json_object_get(c->body, "probed"), &c->err);
}

/* Returns a random number for this join. Every certificate has the number; certificates of earlier joins are invalid
 * from now on. */
static uint64_t join_number(struct request *c, uint64_t before)
{
    const struct control_env *env = control_env(c->control);
    uint64_t number = 0;
    while (number == 0 || number == before) {
        env->random(env->ctx, &number, sizeof number);
        number &= (UINT64_C(1) << 53) - 1; /* exact as a double, too */
    }
    return number;
}

/* Writes the node's document with the machine's reported resources. */
static int node_fill(struct request *c, const char *node, const json_t *old, uint64_t joined)
{
    CLEANUP(json) json_t *doc = json_deep_copy(old);
    int rc;
    probed_apply(doc, json_object_get(c->body, "probed"));
    (void)json_object_set_new(doc, "joined", json_integer((json_int_t)joined));
    rc = crud_write(c, &node_crud, node, old, take_ptr(&doc));
    return rc < 0 ? err_prefix(&c->err, "probed") : optasks_join(c, node, change_read(&c->change, KIND_NODE, node));
}

int node_join(struct request *c)
{
    json_t *certificate = NULL;
    int rc = agents_ready(c);
    if (rc == 0)
        rc = body_check(c);
    if (rc < 0)
        return rc;
    const struct object *invitation =
        invitation_find(c->state, json_string_value(json_object_get(c->body, "token")), c->now_ns);
    const char *node = invitation ? arena_strdup(&c->arena, invitation->token->node) : NULL;
    const json_t *old = node ? change_read(&c->change, KIND_NODE, node) : NULL;
    if (!old)
        return refused(c);
    uint64_t joined = join_number(c, (uint64_t)json_integer_value(json_object_get(old, "joined")));
    uint64_t epoch = (uint64_t)json_integer_value(json_object_get(old, "epoch")), heard = 0, seq;
    if (control_last_report(c->control, node, &heard, &seq) && heard > epoch)
        epoch = heard;
    rc = node_fill(c, node, old, joined);
    if (rc == 0)
        rc = certify(c, node, joined, json_object_get(c->body, "request"), &certificate);
    if (rc < 0)
        return rc;
    c->caller.node = node; /* the actor, for the audit */
    c->caller.token = arena_strdup(&c->arena, invitation->id);
    change_delete(&c->change, KIND_TOKEN, c->caller.token);
    c->change.verb = "node.join";
    c->change.subject = arena_fmt(&c->arena, "nodes/%s", node);
    c->answer.body = json_pack("{s:s, s:o, s:s, s:I, s:I}", "node", node, "certificate", certificate, "ca",
                               c->control->agents.ca_pem, "lease_ns", (json_int_t)c->control->in_force.lease_ns,
                               "epoch", (json_int_t)epoch);
    return 0;
}

/* ---- two agents with one node ID -------------------------------------------------------------------------------- */

int node_epoch_check(struct request *c, const char *node)
{
    uint64_t said = 0, heard = 0, seq;
    int rc = request_query_number(c, "epoch", 1, INT64_MAX, 0, &said);
    const struct object *o = state_find(c->state, KIND_NODE, node);
    if (rc < 0 || !said || !o)
        return rc;
    uint64_t known = o->node->epoch;
    if (control_last_report(c->control, node, &heard, &seq) && heard > known)
        known = heard;
    if (said < known)
        return err_set(&c->err, EAGAIN, "node %s: a newer agent (epoch %" PRIu64 ") is running; this one must end",
                       node, known);
    if (strcmp(c->caller.node, node) == 0)
        c->caller.epoch = said;
    return 0;
}
