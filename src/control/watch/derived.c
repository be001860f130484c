/* derived.c - shared parts of the derived documents: hash, JSON trees and amounts, address of a node. */
#include "control/watch/derived.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>

#include "base/mem.h"
#include "control/watch/derived_out.h"
#include "control/watch/derived_parts.h"
#include "wire/text/quantity.h"

const char *derived_hash(const struct str *text, char buf[static DERIVED_HASH_MAX])
{
    unsigned char hash[16];

    (void)crypto_generichash(hash, sizeof hash, (const unsigned char *)str_text(text), text->len, NULL, 0);
    return sodium_bin2hex(buf, DERIVED_HASH_MAX, hash, sizeof hash);
}

static int text_add(const char *buffer, size_t size, void *to)
{
    str_add_bytes(to, buffer, size);
    return 0;
}

void json_out_tree(struct json_out *o, const char *key, const json_t *tree)
{
    json_out_key(o, key);
    int rc = json_dump_callback(tree, text_add, o->to, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    assert(rc == 0); /* the tree was parsed from JSON text */
    (void)rc;
}

void json_out_amount(struct json_out *o, const char *key, const char *resource, int64_t amount)
{
    char text[QUANTITY_TEXT_MAX];
    json_out_text(o, key, quantity_print(resource, amount, text));
}

const char *protocol_name(enum berth_protocol protocol)
{
    static const char *const names[] = {[BERTH_TCP] = "tcp", [BERTH_UDP] = "udp", [BERTH_SCTP] = "sctp"};
    return names[protocol];
}

struct node_address node_place(const struct state *s, const char *node, struct arena *arena)
{
    const struct object *o = state_find(s, KIND_NODE, node);
    struct node_address place = {.address = node, .zone = ""};

    if (!o)
        return place;
    json_t *doc = object_doc(o);
    const char *address = json_string_value(json_object_get(doc, "address"));
    const char *zone = json_string_value(json_object_get(doc, "zone"));
    if (address && *address)
        place.address = arena_strdup(arena, address);
    if (zone)
        place.zone = arena_strdup(arena, zone);
    json_decref(doc);
    return place;
}

bool instance_serves(const struct instance_view *i)
{
    return i->state == BERTH_STARTING || i->state == BERTH_RUNNING;
}
