/* target_fuzz.c - fuzzes targets: the output fits, is valid UTF-8, and each parameter is found by its name. */
#include "net/http/target.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(mem) char *raw = mem_alloc(size + 1);
    memcpy(raw, data, size);
    raw[size] = '\0';
    CLEANUP(mem) char *room = mem_alloc(target_room(raw));
    struct request_target t = {0};
    const char *why = NULL;

    if (!target_parse(raw, room, &t, &why)) {
        assert(why && !t.text);
        return 0;
    }
    assert(!why && t.text[0] == '/' && t.params <= TARGET_PARAMS_MAX);
    const char *p = t.text;
    assert(str_utf8_valid(p, strlen(p)));
    for (const char *c = p; *c; c++)
        assert((unsigned char)*c >= 0x20 && *c != 0x7f);
    for (size_t i = 0; i < t.params; i++) {
        const char *name = p + strlen(p) + 1, *value = name + strlen(name) + 1;
        assert(*name && str_utf8_valid(name, strlen(name)) && str_utf8_valid(value, strlen(value)));
        assert(target_param(&t, name) == value);
        p = value;
    }
    assert((size_t)(p + strlen(p) + 1 - room) <= target_room(raw));
    return 0;
}
