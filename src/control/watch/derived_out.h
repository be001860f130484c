/* derived_out.h - writes one JSON object member by member, in the order of the calls: derived configuration,
 * openapi.json.
 *
 * No tree is built: the documents are large, and the order of their bytes depends on the code alone.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct json_out {
    struct str *to;
    bool more; /* the next item needs a comma */
};

/* Begins the member `key` or, with NULL, the next item of a list. */
static inline void json_out_key(struct json_out *o, const char *key)
{
    if (o->more)
        str_add_char(o->to, ',');
    o->more = true;
    if (key) {
        str_add_json(o->to, key);
        str_add_char(o->to, ':');
    }
}

/* `bracket` is '{' or '['. */
static inline void json_out_open(struct json_out *o, const char *key, char bracket)
{
    json_out_key(o, key);
    str_add_char(o->to, bracket);
    o->more = false;
}

static inline void json_out_close(struct json_out *o, char bracket)
{
    str_add_char(o->to, bracket);
    o->more = true;
}

static inline void json_out_text(struct json_out *o, const char *key, const char *text)
{
    json_out_key(o, key);
    str_add_json(o->to, text);
}

/* Skips an absent or empty text. */
static inline void out_text_if_set(struct json_out *o, const char *key, const char *text)
{
    if (text && *text)
        json_out_text(o, key, text);
}

static inline void json_out_number(struct json_out *o, const char *key, uint64_t n)
{
    json_out_key(o, key);
    str_addf(o->to, "%llu", (unsigned long long)n);
}

static inline void json_out_bool(struct json_out *o, const char *key, bool value)
{
    json_out_key(o, key);
    str_add(o->to, value ? "true" : "false");
}

/* Writes a JSON tree with sorted members. */
void json_out_tree(struct json_out *o, const char *key, const json_t *tree);
/* Writes an amount as the API does: "500m", "16Gi". */
void json_out_amount(struct json_out *o, const char *key, const char *resource, int64_t amount);
