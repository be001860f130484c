/* doc_kit_test.h - test kit: parses one document given as YAML. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/yaml.h"

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

struct given {
    struct arena arena;
    struct berth_err err;
    json_t *doc;
};

static inline void given_cleanup(struct given *g)
{
    json_decref(g->doc);
    arena_done(&g->arena);
}

static inline struct given given(const char *text)
{
    struct given g = {0};
    arena_init(&g.arena);
    if (yaml_parse(text, strlen(text), "test", &g.doc, &g.err) < 0)
        fail_msg("%s", g.err.text);
    return g;
}

/* A document that is rejected, and text of the error. */
struct refusal {
    const char *doc, *words;
};

#define READ(g, read, ...)                                                                                             \
    do {                                                                                                               \
        if (read((g)->doc, &(g)->arena, __VA_ARGS__, &(g)->err) < 0)                                                   \
            fail_msg("%s", (g)->err.text);                                                                             \
    } while (0)

#define REFUSED(row, g, rc)                                                                                            \
    do {                                                                                                               \
        int rc_ = (rc);                                                                                                \
        if (rc_ >= 0 || rc_ != -(g)->err.code || !strstr((g)->err.text, (row)->words))                                 \
            fail_msg("%s: %d, %s", (row)->doc, rc_, (g)->err.text);                                                    \
    } while (0)
