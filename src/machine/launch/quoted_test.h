/* quoted_test.h - parses JSON with single quotes, for tests. Include <cmocka.h> and its prerequisites before this. */
#pragma once

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static inline json_t *json_of(const char *text)
{
    char *copy = strdup(text);
    for (char *at = copy; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    json_t *doc = json_loads(copy, 0, NULL);
    free(copy);
    assert_non_null(doc);
    return doc;
}
