/* yaml.c - builds a tree from libyaml's events. No recursion: open collections are on a stack of limited depth. */
#include "wire/text/yaml.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <yaml.h>

#include "base/intern.h"
#include "base/vec.h"
#include "wire/text/document.h"

struct anchor {
    json_t *value; /* NULL while its collection is open */
    size_t nodes;  /* number of values, including itself */
    size_t height; /* 0 for a scalar */
};

struct yaml_container {
    json_t *collection;
    char *key;         /* key whose value comes next */
    size_t nodes_from; /* node count of the tree when this was opened */
    size_t height;     /* greatest height so far */
    sym anchor;        /* 0: none */
};

struct builder {
    const char *name;
    struct berth_err *err;
    struct yaml_container frames[DOCUMENT_DEPTH_MAX];
    size_t depth, nodes;
    struct intern names;
    VEC(struct anchor) anchors; /* indexed by name */
    json_t *root;
    size_t line;     /* first line of the root, from 1 */
    yaml_take *take; /* called for each document; NULL: only one document allowed */
    void *take_ctx;
};

static int fail(struct builder *b, yaml_mark_t at, int code, const char *text)
{
    return err_set(b->err, code, "%s:%zu:%zu: %s", b->name, at.line + 1, at.column + 1, text);
}

static bool wants_key(const struct builder *b)
{
    return b->depth > 0 && json_is_object(b->frames[b->depth - 1].collection) && !b->frames[b->depth - 1].key;
}

static int count(struct builder *b, yaml_mark_t at, size_t nodes)
{
    if (nodes > DOCUMENT_NODES_MAX - b->nodes)
        return fail(b, at, E2BIG, "too many values, including those of aliases");
    b->nodes += nodes;
    return 0;
}

static sym anchor_open(struct builder *b, const yaml_char_t *name)
{
    if (!name)
        return 0;
    sym anchor = intern_put(&b->names, (const char *)name);
    if (anchor >= b->anchors.len)
        vec_resize(&b->anchors, (size_t)anchor + 1);
    json_decref(b->anchors.at[anchor].value); /* a later anchor with the same name replaces it */
    b->anchors.at[anchor] = (struct anchor){0};
    return anchor;
}

static void anchor_close(struct builder *b, sym anchor, json_t *value, size_t nodes, size_t height)
{
    if (!anchor)
        return;
    json_decref(b->anchors.at[anchor].value); /* the same name was used inside its own collection */
    b->anchors.at[anchor] = (struct anchor){json_incref(value), nodes, height};
}

/* Adds a finished value to its collection; takes the reference. */
static int attach(struct builder *b, yaml_mark_t at, json_t *value, size_t height)
{
    if (b->depth == 0) {
        b->root = value;
        return 0;
    }
    struct yaml_container *f = &b->frames[b->depth - 1];
    if (height + 1 > f->height)
        f->height = height + 1;
    int rc;
    if (json_is_array(f->collection)) {
        rc = json_array_append_new(f->collection, value);
    } else {
        rc = json_object_set_new(f->collection, f->key, value);
        mem_free(take_ptr(&f->key));
    }
    return rc < 0 ? fail(b, at, ENOMEM, "out of memory") : 0;
}

static int on_key(struct builder *b, const yaml_event_t *e)
{
    struct yaml_container *f = &b->frames[b->depth - 1];
    if (e->type != YAML_SCALAR_EVENT)
        return fail(b, e->start_mark, EINVAL, "a key must be plain text");
    const char *text = (const char *)e->data.scalar.value;
    if (strlen(text) != e->data.scalar.length)
        return fail(b, e->start_mark, EINVAL, "a NUL character in a key");
    if (json_object_get(f->collection, text))
        return err_set(b->err, EINVAL, "%s:%zu:%zu: the key \"%.64s\" is listed twice", b->name, e->start_mark.line + 1,
                       e->start_mark.column + 1, text);
    f->key = mem_strdup(text);
    return count(b, e->start_mark, 1);
}

static bool tag_is(const yaml_char_t *tag, const char *name)
{
    static const char prefix[] = "tag:yaml.org,2002:";
    return strncmp((const char *)tag, prefix, sizeof prefix - 1) == 0 &&
           strcmp((const char *)tag + sizeof prefix - 1, name) == 0;
}

/* Returns whether a resolved value matches its tag. */
static bool tag_agrees(const yaml_char_t *tag, const json_t *value)
{
    return (tag_is(tag, "null") && json_is_null(value)) || (tag_is(tag, "bool") && json_is_boolean(value)) ||
           (tag_is(tag, "int") && json_is_integer(value)) || (tag_is(tag, "float") && json_is_number(value));
}

static int on_scalar(struct builder *b, const yaml_event_t *e)
{
    const char *text = (const char *)e->data.scalar.value;
    size_t len = e->data.scalar.length;
    const yaml_char_t *tag = e->data.scalar.tag;
    bool as_text = tag ? tag_is(tag, "str") || strcmp((const char *)tag, "!") == 0 : !e->data.scalar.plain_implicit;

    int rc = count(b, e->start_mark, 1);
    if (rc < 0)
        return rc;
    if (memchr(text, 0, len))
        return fail(b, e->start_mark, EINVAL, "a NUL character in a string");
    json_t *value = NULL;
    if (as_text) {
        value = json_stringn(text, len);
    } else {
        rc = yaml_scalar(text, len, &value);
        if (rc == -ERANGE)
            return fail(b, e->start_mark, ERANGE, "the number is too large; put quotes around it if it is text");
        if (rc == -EDOM)
            return fail(b, e->start_mark, EDOM, "not a finite number; put quotes around it if it is text");
    }
    if (!value)
        return fail(b, e->start_mark, ENOMEM, "out of memory");
    if (tag && !as_text && !tag_agrees(tag, value)) {
        json_decref(value);
        return fail(b, e->start_mark, EINVAL,
                    "the tag does not match the value, or is not one of str, int, float, bool, null");
    }
    anchor_close(b, anchor_open(b, e->data.scalar.anchor), value, 1, 0);
    return attach(b, e->start_mark, value, 0);
}

static int on_open(struct builder *b, const yaml_event_t *e)
{
    bool list = e->type == YAML_SEQUENCE_START_EVENT;
    const yaml_char_t *tag = list ? e->data.sequence_start.tag : e->data.mapping_start.tag;
    if (tag && !tag_is(tag, list ? "seq" : "map") && strcmp((const char *)tag, "!") != 0)
        return fail(b, e->start_mark, EINVAL, "unknown tag");
    if (b->depth == DOCUMENT_DEPTH_MAX)
        return fail(b, e->start_mark, E2BIG, "nested too deeply");
    size_t nodes_from = b->nodes;
    int rc = count(b, e->start_mark, 1);
    if (rc < 0)
        return rc;
    json_t *collection = list ? json_array() : json_object();
    if (!collection)
        return fail(b, e->start_mark, ENOMEM, "out of memory");
    b->frames[b->depth++] = (struct yaml_container){
        .collection = collection,
        .nodes_from = nodes_from,
        .height = 1,
        .anchor = anchor_open(b, list ? e->data.sequence_start.anchor : e->data.mapping_start.anchor),
    };
    return 0;
}

static int on_close(struct builder *b, const yaml_event_t *e)
{
    struct yaml_container f = b->frames[--b->depth];
    anchor_close(b, f.anchor, f.collection, b->nodes - f.nodes_from, f.height);
    return attach(b, e->start_mark, f.collection, f.height);
}

static int on_alias(struct builder *b, const yaml_event_t *e)
{
    sym name = intern_find(&b->names, (const char *)e->data.alias.anchor);
    if (name == MAP_NONE || name >= b->anchors.len)
        return fail(b, e->start_mark, EINVAL, "an alias of an anchor that is not defined above");
    struct anchor anchor = b->anchors.at[name];
    if (!anchor.value)
        return fail(b, e->start_mark, EINVAL, "the alias refers to itself");
    if (b->depth + anchor.height > DOCUMENT_DEPTH_MAX)
        return fail(b, e->start_mark, E2BIG, "nested too deeply");
    int rc = count(b, e->start_mark, anchor.nodes);
    if (rc < 0)
        return rc;
    return attach(b, e->start_mark, json_incref(anchor.value), anchor.height);
}

static int on_value(struct builder *b, const yaml_event_t *e)
{
    if (e->type == YAML_MAPPING_END_EVENT || e->type == YAML_SEQUENCE_END_EVENT)
        return on_close(b, e);
    if (wants_key(b))
        return on_key(b, e);
    switch (e->type) {
    case YAML_SCALAR_EVENT: return on_scalar(b, e);
    case YAML_ALIAS_EVENT: return on_alias(b, e);
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT: return on_open(b, e);
    default: return 0; /* start and end of the stream or document */
    }
}

/* Reports a libyaml error; libyaml gives no position for invalid bytes. */
static int parser_fail(struct builder *b, const yaml_parser_t *p, const char *text, size_t len)
{
    if (p->error == YAML_MEMORY_ERROR)
        return fail(b, p->mark, ENOMEM, "out of memory");
    const char *problem = p->problem ? p->problem : "cannot be read";
    if (p->error != YAML_READER_ERROR)
        return err_set(b->err, EINVAL, "%s:%zu:%zu: %s%s%s", b->name, p->problem_mark.line + 1,
                       p->problem_mark.column + 1, problem, p->context ? ", " : "", p->context ? p->context : "");
    yaml_mark_t at = {0};
    for (size_t i = 0; i < p->problem_offset && i < len; i++) {
        at.column++;
        if (text[i] == '\n') {
            at.line++;
            at.column = 0;
        }
    }
    return fail(b, at, EILSEQ, problem);
}

static bool is_nothing(const yaml_event_t *e)
{
    return e->type == YAML_SCALAR_EVENT && e->data.scalar.length == 0 && e->data.scalar.plain_implicit;
}

/* Handles an event of the only document. A second document must be empty, as after a trailing `---`. */
static int step_single(struct builder *b, const yaml_event_t *e)
{
    if (e->type == YAML_STREAM_END_EVENT)
        return b->root ? 0 : err_set(b->err, EINVAL, "%s: empty", b->name);
    if (!b->root)
        return on_value(b, e);
    if (e->type == YAML_DOCUMENT_START_EVENT || e->type == YAML_DOCUMENT_END_EVENT || is_nothing(e))
        return 0;
    return fail(b, e->start_mark, EINVAL, "only one document per file is allowed; put everything before the `---`");
}

/* Clears the anchors, which belong to one document. */
static void anchors_clear(struct builder *b)
{
    for (size_t i = 0; i < b->anchors.len; i++)
        json_decref(b->anchors.at[i].value);
    b->anchors.len = 0;
}

static int step_each(struct builder *b, const yaml_event_t *e)
{
    if (e->type == YAML_DOCUMENT_END_EVENT && b->root) {
        b->take(b->take_ctx, take_ptr(&b->root), b->line);
        anchors_clear(b);
        intern_done(&b->names);
        intern_init(&b->names);
    }
    if (e->type == YAML_STREAM_START_EVENT || e->type == YAML_STREAM_END_EVENT ||
        e->type == YAML_DOCUMENT_START_EVENT || e->type == YAML_DOCUMENT_END_EVENT)
        return 0;
    if (b->depth == 0) {
        if (is_nothing(e))
            return 0;
        b->line = e->start_mark.line + 1;
    }
    return on_value(b, e);
}

static void builder_done(struct builder *b)
{
    for (size_t i = 0; i < b->depth; i++) {
        json_decref(b->frames[i].collection);
        mem_free(b->frames[i].key);
    }
    anchors_clear(b);
    vec_done(&b->anchors);
    intern_done(&b->names);
    json_decref(b->root);
}

/* Feeds the builder until the stream has ended. */
static int parse(struct builder *b, const char *text, size_t len)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return err_set(b->err, ENOMEM, "%s: out of memory", b->name);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);

    int rc = 0;
    for (bool over = false; rc == 0 && !over;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            rc = parser_fail(b, &parser, text, len);
            break;
        }
        over = event.type == YAML_STREAM_END_EVENT;
        rc = b->take ? step_each(b, &event) : step_single(b, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return rc;
}

int yaml_parse(const char *text, size_t len, const char *name, json_t **ret, struct berth_err *err)
{
    struct builder b = {.name = name, .err = err};

    intern_init(&b.names);
    int rc = parse(&b, text, len);
    if (rc == 0)
        *ret = take_ptr(&b.root);
    builder_done(&b);
    return rc;
}

int yaml_parse_each(const char *text, size_t len, const char *name, yaml_take *take, void *ctx, struct berth_err *err)
{
    struct builder b = {.name = name, .err = err, .take = take, .take_ctx = ctx};

    intern_init(&b.names);
    int rc = parse(&b, text, len);
    builder_done(&b);
    return rc;
}
