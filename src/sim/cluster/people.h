/* people.h - the inside of the people; for people.c and admin.c. */
#pragma once

#include "sim/cluster/bodies.h"
#include "sim/cluster/world.h"

enum { KEPT_REQUESTS = 32 };

/* A request that may be made again. */
struct kept_request {
    char *method, *path, *body, *key;
};

struct person {
    struct world *w;
    char id[ID_MAX + 1], group[ID_MAX + 1];
    const char *role;
    char token[TOKEN_TEXT_MAX]; /* "": none yet */
    bool asking;                /* for the token */
    uint64_t keys;              /* used so far */
    struct kept_request kept[KEPT_REQUESTS];
    size_t kept_len;
};

struct people {
    char admin_token[TOKEN_TEXT_MAX];
    VEC(struct person *) at;
    size_t nodes;       /* that shall be there */
    uint64_t made;      /* names so far */
    VEC(char *) asking; /* nodes whose token is on its way */
};

/* One thing that an administrator does (admin.c). */
void admin_act(struct world *w);
/* Makes groups, users, nodes and tokens that are not there; false: nothing is missing. */
bool admin_set_up(struct world *w);
void admin_ask(struct world *w, const char *method, const char *path, json_t *body, const char *query, ask_then *then,
               void *ctx, void (*drop)(void *));
