#include "agent/instance/exclusive.h"

#include <pthread.h>

#include "base/mem.h"
#include "base/vec.h"

struct exclusive_claim {
    uint64_t id;
    char *what;
};

struct exclusive_claims {
    pthread_mutex_t lock;
    VEC(struct exclusive_claim) at;
};

struct exclusive_claims *exclusive_claims_new(void)
{
    struct exclusive_claims *c = mem_zalloc(sizeof *c);
    (void)pthread_mutex_init(&c->lock, NULL);
    return c;
}

void exclusive_claims_free(struct exclusive_claims *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->at.len; i++)
        mem_free(c->at.at[i].what);
    vec_done(&c->at);
    (void)pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

static bool find(const struct exclusive_claims *c, const char *what)
{
    for (size_t i = 0; i < c->at.len; i++)
        if (strcmp(c->at.at[i].what, what) == 0)
            return true;
    return false;
}

bool exclusive_claims_add(struct exclusive_claims *c, uint64_t id, const char *what)
{
    (void)pthread_mutex_lock(&c->lock);
    bool got = !find(c, what);
    if (got) {
        struct exclusive_claim claim = {id, mem_strdup(what)};
        vec_push(&c->at, claim);
    }
    (void)pthread_mutex_unlock(&c->lock);
    return got;
}

bool exclusive_claims_contain(struct exclusive_claims *c, const char *what)
{
    (void)pthread_mutex_lock(&c->lock);
    bool taken = find(c, what);
    (void)pthread_mutex_unlock(&c->lock);
    return taken;
}

void exclusive_claims_remove_all(struct exclusive_claims *c, uint64_t id)
{
    (void)pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < c->at.len;) {
        if (c->at.at[i].id != id) {
            i++;
            continue;
        }
        mem_free(c->at.at[i].what);
        c->at.at[i] = c->at.at[--c->at.len];
    }
    (void)pthread_mutex_unlock(&c->lock);
}
