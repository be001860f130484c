/* durability.c - checks guarantees to clients: a success is in the journal for ever (7), a key stands for one request
 * (9).
 *
 * The chain of the journal (verify.c) proves that no record is lost, also after each crash. This file ties each success
 * to its record.
 */
#include <inttypes.h>
#include <string.h>

#include "sim/cluster/world.h"

#define FORGET_NS (23 * HOUR) /* keys are guaranteed for a day */

enum { PROMISES_MAX = 2000 };

struct key_use {
    char *who, *key;
    uint64_t request; /* hash of method, path, query and body */
    int status;
    json_t *body;
    uint64_t number;
};

struct guarantees {
    VEC(struct key_use) at;
};

struct guarantees *guarantees_new(void)
{
    return mem_zalloc(sizeof(struct guarantees));
}

static void key_use_done(struct key_use *p)
{
    mem_free(p->who);
    mem_free(p->key);
    json_decref(p->body);
}

void guarantees_free(struct guarantees *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->at.len; i++)
        key_use_done(&p->at.at[i]);
    vec_done(&p->at);
    mem_free(p);
}

static uint64_t text_hash(uint64_t seed, const char *text)
{
    return hash_bytes(text ? text : "", text ? strlen(text) : 0, seed);
}

static uint64_t request_hash(const struct sim_request *ask)
{
    uint64_t h = text_hash(text_hash(1, ask->method), ask->path);
    for (size_t i = 0; i < sizeof ask->query / sizeof *ask->query; i++)
        h = text_hash(h, ask->query[i]);
    return hash_bytes(ask->body ? ask->body : "", ask->body_len, h);
}

static struct key_use *find(struct guarantees *p, const char *who, const char *key)
{
    for (size_t i = 0; i < p->at.len; i++)
        if (strcmp(p->at.at[i].who, who) == 0 && strcmp(p->at.at[i].key, key) == 0)
            return &p->at.at[i];
    return NULL;
}

/* Notes a request after its answer, so concurrent requests with one key are checked by their answers. */
static void keep(struct sim_world *w, uint64_t number, const struct sim_request *ask, const struct request_outcome *o)
{
    struct key_use p = {.who = mem_strdup(ask->who),
                        .key = mem_strdup(ask->key),
                        .request = request_hash(ask),
                        .status = o->status,
                        .body = json_deep_copy(o->body),
                        .number = number};
    if (w->guarantees->at.len < PROMISES_MAX) {
        vec_push(&w->guarantees->at, p);
        return;
    }
    struct key_use *old = &w->guarantees->at.at[number % PROMISES_MAX];
    key_use_done(old);
    *old = p;
}

static bool same_body(const json_t *a, const json_t *b)
{
    return a && b ? json_equal(a, b) : a == b;
}

static void again(struct sim_world *w, uint64_t number, const struct sim_request *ask, const struct request_outcome *o,
                  const struct key_use *p)
{
    bool same = p->request == request_hash(ask), good = o->status >= 200 && o->status < 300;
    if (!same && good)
        world_breach(w, 9,
                     "request %" PRIu64 " (%s %s by %s) has the key of %" PRIu64 ", which was another, and got %d",
                     number, ask->method, ask->path, ask->who, p->number, o->status);
    if (same && o->changed)
        world_breach(w, 9, "request %" PRIu64 " (%s %s by %s) repeats %" PRIu64 ", and was carried out again", number,
                     ask->method, ask->path, ask->who, p->number);
    if (same && good && (o->status != p->status || !same_body(o->body, p->body)))
        world_breach(w, 9, "request %" PRIu64 " (%s %s by %s) repeats %" PRIu64 ", and got another answer", number,
                     ask->method, ask->path, ask->who, p->number);
    /* A client without permission, or with a request that cannot be served now, gets another status. */
    bool excused = o->status == 401 || o->status == 403 || o->status == 503 || o->status == 429;
    if (same && !good && !excused)
        world_breach(w, 9, "request %" PRIu64 " (%s %s by %s) repeats %" PRIu64 ", which got %d, and got %d", number,
                     ask->method, ask->path, ask->who, p->number, p->status, o->status);
}

void guarantees_answered(struct sim_world *w, uint64_t number, const struct sim_request *ask,
                         const struct request_outcome *o)
{
    bool good = o->status >= 200 && o->status < 300;
    if (good && o->changed && o->revision != w->past.at[number - 1].changed)
        world_breach(w, 7, "request %" PRIu64 " was told revision %" PRIu64 ", and made %" PRIu64, number, o->revision,
                     w->past.at[number - 1].changed);
    if (!ask->key || o->status == 0)
        return;
    if (w->now_ns + w->jumped_ns > FORGET_NS) /* by some clock a day may have passed */
        return;
    struct key_use *p = find(w->guarantees, ask->who, ask->key);
    if (p)
        again(w, number, ask, o, p);
    else if (good)
        keep(w, number, ask, o);
}

/* A new user with the name of a deleted one is another user. */
void guarantees_verify(struct sim_world *w, const struct transaction *t)
{
    for (size_t i = 0; i < t->len; i++)
        for (size_t k = 0; k < w->guarantees->at.len && t->changes[i].kind == KIND_USER && !t->changes[i].now; k++)
            if (strcmp(w->guarantees->at.at[k].who, t->changes[i].old->id) == 0) {
                key_use_done(&w->guarantees->at.at[k]);
                w->guarantees->at.at[k--] = w->guarantees->at.at[--w->guarantees->at.len];
            }
}
