/* admin.c - random actions of administrators: create missing users, tokens and nodes, and disturb the cluster. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cluster/batch.h"

void admin_ask(struct sim_world *w, const char *method, const char *path, json_t *body, const char *query,
               request_callback *then, void *ctx, void (*drop)(void *))
{
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    struct sim_request ask = {.who = "admin",
                              .method = method,
                              .path = path,
                              .token = w->people->admin_token,
                              .body = text,
                              .then = then,
                              .ctx = ctx,
                              .drop = drop};
    if (query) {
        ask.query[0] = query;
        ask.query[1] = "true";
    }
    world_trace(w, "admin: %s %s%s%s %s", method, path, query ? "?" : "", query ? query : "", text ? text : "");
    (void)world_request(w, &ask);
    free(text);
    json_decref(body);
}

/* ---- missing objects -------------------------------------------------------------------------------------------- */

static void token_came(struct sim_world *w, void *ctx, const struct request_outcome *o)
{
    struct sim_user *p = ctx;
    const char *token = json_string_value(json_object_get(o->body, "token"));
    (void)w;
    p->asking = false;
    if (token)
        (void)snprintf(p->token, sizeof p->token, "%s", token);
}

static bool person_set_up(struct sim_world *w, struct sim_user *p)
{
    if (p->group[0] && !mirror_find(&w->mirror, KIND_GROUP, p->group)) {
        admin_ask(w, "POST", "/v1/groups", json_pack("{s:s}", "id", p->group), NULL, NULL, NULL, NULL);
        return true;
    }
    if (!mirror_find(&w->mirror, KIND_USER, p->id)) {
        json_t *body = json_pack("{s:s, s:s}", "id", p->id, "role", p->role);
        p->token[0] = 0;
        if (p->group[0])
            (void)json_object_set_new(body, "group", json_string(p->group));
        admin_ask(w, "POST", "/v1/users", body, NULL, NULL, NULL, NULL);
        return true;
    }
    if (p->token[0] || p->asking)
        return false;
    p->asking = true;
    admin_ask(w, "POST", "/v1/tokens", json_pack("{s:s}", "user", p->id), NULL, token_came, p, NULL);
    return true;
}

static void node_token_came(struct sim_world *w, void *ctx, const struct request_outcome *o)
{
    const char *node = ctx, *token = json_string_value(json_object_get(o->body, "token"));
    struct sim_people *all = w->people;
    for (size_t i = 0; i < all->asking.len; i++)
        if (strcmp(all->asking.at[i], node) == 0) {
            mem_free(all->asking.at[i]);
            all->asking.at[i] = all->asking.at[--all->asking.len];
            break;
        }
    if (token && !agents_has(w, node))
        agents_add(w, node, token);
}

static bool is_asking(const struct sim_people *all, const char *node)
{
    for (size_t i = 0; i < all->asking.len; i++)
        if (strcmp(all->asking.at[i], node) == 0)
            return true;
    return false;
}

static bool node_set_up(struct sim_world *w, size_t number)
{
    struct sim_people *all = w->people;
    char id[24];
    (void)snprintf(id, sizeof id, "n%zu", number);
    if (!mirror_find(&w->mirror, KIND_NODE, id)) {
        if (agents_has(w, id))
            return false; /* the old machine must be removed first */
        json_t *body = body_node(&w->users_rng);
        (void)json_object_set_new(body, "id", json_string(id));
        admin_ask(w, "POST", "/v1/nodes", body, NULL, NULL, NULL, NULL);
        return true;
    }
    if (agents_has(w, id) || is_asking(all, id))
        return false;
    vec_push(&all->asking, mem_strdup(id));
    admin_ask(w, "POST", "/v1/tokens", json_pack("{s:s}", "node", id), NULL, node_token_came, mem_strdup(id), mem_free);
    return true;
}

bool admin_set_up(struct sim_world *w)
{
    for (size_t i = 0; i < w->people->at.len; i++)
        if (person_set_up(w, w->people->at.at[i]))
            return true;
    for (size_t i = 0; i < w->people->nodes; i++)
        if (node_set_up(w, i))
            return true;
    return false;
}

/* ---- disturbances ----------------------------------------------------------------------------------------------- */

static void node_act(struct sim_world *w, const char *id)
{
    struct random_stream *rng = &w->users_rng;
    char path[128];
    switch (random_below(rng, 12)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        (void)snprintf(path, sizeof path, "/v1/nodes/%s/enable", id);
        admin_ask(w, "POST", path, NULL, NULL, NULL, NULL, NULL);
        break;
    case 5:
    case 6:
    case 7:
        (void)snprintf(path, sizeof path, "/v1/nodes/%s/%s", id,
                       RANDOM_PICK(rng, char *, "cordon", "drain", "disable"));
        admin_ask(w, "POST", path, NULL, NULL, NULL, NULL, NULL);
        break;
    case 8:
    case 9:
        (void)snprintf(path, sizeof path, "/v1/nodes/%s/capabilities", id);
        admin_ask(w, "PUT", path, body_capabilities(rng), NULL, NULL, NULL, NULL);
        break;
    case 10:
        (void)snprintf(path, sizeof path, "/v1/nodes/%s/settings", id);
        admin_ask(w, "PUT", path, body_settings(rng), NULL, NULL, NULL, NULL);
        break;
    default:
        (void)snprintf(path, sizeof path, "/v1/nodes/%s", id);
        admin_ask(w, "DELETE", path, NULL, random_per_mille(rng, 400) ? "force" : NULL, NULL, NULL, NULL);
        break;
    }
}

static void user_act(struct sim_world *w, const struct sim_user *p)
{
    struct random_stream *rng = &w->users_rng;
    const struct mirror_doc *user = mirror_find(&w->mirror, KIND_USER, p->id);
    char path[128];
    if (!user)
        return;
    if (random_per_mille(rng, 60)) {
        (void)snprintf(path, sizeof path, "/v1/users/%s", p->id);
        admin_ask(w, "DELETE", path, NULL, "force", NULL, NULL, NULL);
        return;
    }
    if (random_per_mille(rng, 100) && p->group[0]) {
        (void)snprintf(path, sizeof path, "/v1/users/%s", p->id);
        admin_ask(w, "PATCH", path, json_pack("{s:s}", "group", random_per_mille(rng, 500) ? p->group : "group0"), NULL,
                  NULL, NULL, NULL);
        return;
    }
    (void)snprintf(path, sizeof path, "/v1/users/%s/%s", p->id,
                   user->user.disabled          ? "enable"
                   : random_per_mille(rng, 500) ? "disable"
                                                : "enable");
    admin_ask(w, "POST", path, NULL, NULL, NULL, NULL, NULL);
}

/* Revokes the token of a user, who gets a new one. */
static void token_act(struct sim_world *w)
{
    struct random_stream *rng = &w->users_rng;
    struct sim_user *p = w->people->at.at[random_below(rng, w->people->at.len)];
    char path[128], id[TOKEN_ID_LEN + 1];
    if (strlen(p->token) < strlen("berth_") + TOKEN_ID_LEN)
        return;
    (void)snprintf(id, sizeof id, "%s", p->token + strlen("berth_"));
    (void)snprintf(path, sizeof path, "/v1/tokens/%s", id);
    p->token[0] = 0;
    admin_ask(w, "DELETE", path, NULL, NULL, NULL, NULL, NULL);
}

static void settings_act(struct sim_world *w)
{
    struct random_stream *rng = &w->users_rng;
    if (random_per_mille(rng, 400)) {
        admin_ask(w, "PATCH", "/v1/system/settings", json_pack("{s:i}", "seed", (int)random_range(rng, 0, 9)), NULL,
                  NULL, NULL, NULL);
        return;
    }
    admin_ask(w, "PATCH", "/v1/system/settings",
              json_pack("{s:s}", "profile", RANDOM_PICK(rng, char *, "default", "default", "balance", "no-such")), NULL,
              NULL, NULL, NULL);
}

void admin_act(struct sim_world *w)
{
    struct random_stream *rng = &w->users_rng;
    size_t draw = random_below(rng, 100);
    size_t nodes = w->mirror.of[KIND_NODE].len;
    if (random_per_mille(rng, 300))
        batch_act(w);
    else if (draw < 60 && nodes)
        node_act(w, w->mirror.of[KIND_NODE].at[random_below(rng, nodes)]->id);
    else if (draw < 80 && w->people->at.len)
        user_act(w, w->people->at.at[random_below(rng, w->people->at.len)]);
    else if (draw < 83 && w->people->at.len)
        token_act(w);
    else if (draw < 95)
        admin_ask(w, "POST", "/v1/schedule", NULL, NULL, NULL, NULL, NULL);
    else
        settings_act(w);
}
