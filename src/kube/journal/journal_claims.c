#include "kube/journal/journal_claims.h"

#include "base/hash.h"

enum { LOOK_MIN = 64 };

static uint64_t role_hash(const char *role)
{
    return hash_bytes(role, strlen(role), 0);
}

static bool same(const void *ctx, uint32_t value, const void *key)
{
    return strcmp(((const struct journal_claims *)ctx)->all.at[value].role, key) == 0;
}

static void journal_claim_done(struct journal_claim *c)
{
    mem_free(c->role);
    mem_free(c->text);
}

void journal_claims_trim(struct journal_claims *c, const struct cache *p)
{
    size_t len = 0;
    map_done(&c->by_role);
    c->by_role = (struct map){0};
    for (size_t i = 0; i < c->all.len; i++) {
        struct journal_claim one = c->all.at[i];
        if (!cache_role_exists(p, one.role)) {
            journal_claim_done(&one);
            continue;
        }
        map_add(&c->by_role, role_hash(one.role), (uint32_t)len);
        c->all.at[len++] = one;
    }
    c->all.len = len;
    c->look_len = 2 * len + LOOK_MIN;
}

bool journal_claims_put(struct journal_claims *c, const struct cache *p, const char *role, const char *text)
{
    uint64_t hash = role_hash(role);
    uint32_t i = map_find(&c->by_role, hash, same, c, role);
    if (i != MAP_NONE) {
        struct journal_claim *known = &c->all.at[i];
        if (strcmp(known->text, text) == 0)
            return false;
        mem_free(known->text);
        known->text = mem_strdup(text);
        return true;
    }
    if (c->all.len >= c->look_len)
        journal_claims_trim(c, p);
    map_add(&c->by_role, hash, (uint32_t)c->all.len);
    vec_push(&c->all, ((struct journal_claim){mem_strdup(role), mem_strdup(text)}));
    return true;
}

void journal_claims_done(struct journal_claims *c)
{
    for (size_t i = 0; i < c->all.len; i++)
        journal_claim_done(&c->all.at[i]);
    vec_done(&c->all);
    map_done(&c->by_role);
}
