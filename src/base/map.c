/* map.c - a hash table with open addressing, linear probing and power-of-two sizes. */
#include "base/map.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

enum { EMPTY = 0, DEAD = 1, HASHES_FROM = 2 };

static uint64_t live_hash(uint64_t hash)
{
    return hash < HASHES_FROM ? hash + HASHES_FROM : hash;
}

void map_done(struct map *m)
{
    mem_free(m->hash);
    mem_free(m->value);
    *m = (struct map){0};
}

void map_copy(const struct map *m, struct map *ret)
{
    *ret = *m;
    if (m->cap == 0)
        return;
    ret->hash = mem_array(m->cap, sizeof *m->hash);
    ret->value = mem_array(m->cap, sizeof *m->value);
    memcpy(ret->hash, m->hash, m->cap * sizeof *m->hash);
    memcpy(ret->value, m->value, m->cap * sizeof *m->value);
}

uint32_t map_find(const struct map *m, uint64_t hash, map_same *same, const void *ctx, const void *key)
{
    if (m->cap == 0)
        return MAP_NONE;
    hash = live_hash(hash);
    for (size_t i = hash & (m->cap - 1); m->hash[i] != EMPTY; i = (i + 1) & (m->cap - 1))
        if (m->hash[i] == hash && same(ctx, m->value[i], key))
            return m->value[i];
    return MAP_NONE;
}

static void put(struct map *m, uint64_t hash, uint32_t value)
{
    size_t i = hash & (m->cap - 1);
    while (m->hash[i] >= HASHES_FROM)
        i = (i + 1) & (m->cap - 1);
    m->hash[i] = hash;
    m->value[i] = value;
}

static void rehash(struct map *m, size_t cap)
{
    struct map old = *m;
    m->hash = mem_zarray(cap, sizeof *m->hash);
    m->value = mem_array(cap, sizeof *m->value);
    m->cap = cap;
    m->dead = 0;
    for (size_t i = 0; i < old.cap; i++)
        if (old.hash[i] >= HASHES_FROM)
            put(m, old.hash[i], old.value[i]);
    mem_free(old.hash);
    mem_free(old.value);
}

void map_add(struct map *m, uint64_t hash, uint32_t value)
{
    if ((m->len + m->dead + 1) * 4 > m->cap * 3)
        rehash(m, (m->len + 1) * 2 > m->cap ? (m->cap ? m->cap * 2 : 64) : m->cap);
    put(m, live_hash(hash), value);
    m->len++;
}

void map_drop(struct map *m, uint64_t hash, uint32_t value)
{
    hash = live_hash(hash);
    size_t i = hash & (m->cap - 1);
    while (m->hash[i] != hash || m->value[i] != value) {
        assert(m->hash[i] != EMPTY);
        i = (i + 1) & (m->cap - 1);
    }
    m->hash[i] = DEAD;
    m->len--;
    m->dead++;
}
