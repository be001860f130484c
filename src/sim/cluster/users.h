/* users.h - the simulated users; for users.c and admin.c. */
#pragma once

#include "sim/cluster/random_docs.h"
#include "sim/cluster/world.h"

enum { REPEATABLE_REQUESTS_MAX = 32 };

/* A request that may be repeated. */
struct repeatable_request {
    char *method, *path, *body, *key;
};

struct sim_user {
    struct sim_world *w;
    char id[ID_MAX + 1], group[ID_MAX + 1];
    const char *role;
    char token[TOKEN_TEXT_MAX]; /* "": none yet */
    bool asking;                /* a request for the token is running */
    uint64_t keys;              /* number of idempotency keys used so far */
    struct repeatable_request kept[REPEATABLE_REQUESTS_MAX];
    size_t kept_len;
};

struct sim_people {
    char admin_token[TOKEN_TEXT_MAX];
    VEC(struct sim_user *) at;
    size_t nodes;       /* desired number of nodes */
    uint64_t made;      /* number of names so far */
    VEC(char *) asking; /* nodes whose token was requested */
};

/* Does one random action of an administrator (admin.c). */
void admin_act(struct sim_world *w);
/* Creates missing groups, users, nodes and tokens. Returns false if nothing is missing. */
bool admin_set_up(struct sim_world *w);
void admin_ask(struct sim_world *w, const char *method, const char *path, json_t *body, const char *query,
               request_callback *then, void *ctx, void (*drop)(void *));
