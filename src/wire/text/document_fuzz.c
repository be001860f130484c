/* document_fuzz.c - any bytes give a tree within the limits, or an error; a parsed tree can be printed and parsed
 * again.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "wire/text/document.h"
#include "wire/text/yaml.h"
#include "wire/text/yaml_write.h"

enum { LOOKED_AT_MAX = 100000 }; /* aliases can expand a small input to millions of values */

static void tree_check(const json_t *value, unsigned depth, size_t *seen)
{
    const char *key;
    json_t *member;
    size_t i;
    assert(depth <= DOCUMENT_DEPTH_MAX + 1);
    if (++*seen > LOOKED_AT_MAX)
        return;
    if (json_is_string(value)) {
        size_t len = json_string_length(value);
        assert(strlen(json_string_value(value)) == len);
        assert(str_utf8_valid(json_string_value(value), len));
    }
    json_array_foreach((json_t *)value, i, member) tree_check(member, depth + 1, seen);
    json_object_foreach((json_t *)value, key, member)
    {
        assert(str_utf8_valid(key, strlen(key)));
        tree_check(member, depth + 1, seen);
    }
}

static void written_check(const json_t *doc)
{
    CLEANUP(str) struct str text = {0};
    json_t *again = NULL;
    struct berth_err err = {0};

    yaml_write(&text, doc);
    int rc = yaml_parse(str_text(&text), text.len, "again", &again, &err);
    assert(rc == 0);
    assert(json_equal((json_t *)doc, again));
    json_decref(again);
}

static void stream_check(const char *text, size_t size)
{
    struct documents documents;
    struct berth_err err = {0};
    int rc = documents_parse(text, size, "fuzz", &documents, &err);
    assert(rc == -err.code);
    assert(rc == 0 || documents.len == 0);
    for (size_t i = 0; i < documents.len; i++)
        assert(documents.at[i].root && documents.at[i].line > 0);
    documents_done(&documents);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *doc = NULL;
    struct berth_err err = {0};
    int rc = document_parse((const char *)data, size, "fuzz", &doc, &err);
    assert((rc == 0) == (doc != NULL));
    assert(rc == -err.code);
    size_t seen = 0;
    if (doc)
        tree_check(doc, 1, &seen);
    if (doc && seen < LOOKED_AT_MAX)
        written_check(doc);
    json_decref(doc);
    stream_check((const char *)data, size);
    return 0;
}
