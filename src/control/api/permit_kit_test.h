/* permit_kit_test.h - test helper: a state made of a few documents, without a daemon. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "control/state/state.h"

struct world {
    struct store *store;
    struct state *state;
    uint64_t revision;
};

static inline void world_put(struct world *w, enum kind kind, const char *id, const char *text)
{
    char key[OBJECT_KEY_MAX];
    struct berth_err err = {0};
    struct store_event event = {
        .key = object_key(kind, id, key), .value = {text, strlen(text)}
    };
    event.created = event.revision = ++w->revision;
    int rc = state_apply(w->state, &event, &err);
    if (rc < 0)
        fail_msg("%s", err.text);
}

static inline void world_drop(struct world *w, enum kind kind, const char *id)
{
    char key[OBJECT_KEY_MAX];
    struct store_event event = {.key = object_key(kind, id, key), .gone = true, .revision = ++w->revision};
    assert_int_equal(state_apply(w->state, &event, NULL), 0);
}

static inline void world_open(struct world *w)
{
    struct berth_err err = {0};
    *w = (struct world){.store = store_memory_new()};
    if (state_load(w->store, &w->state, &err) < 0)
        fail_msg("%s", err.text);
}

static inline void world_done(struct world *w)
{
    state_free(w->state);
    store_close(w->store);
}
