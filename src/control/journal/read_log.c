#include "control/journal/read_log.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "control/control_parts.h"
#include "control/journal/journal_note.h"

enum { PATH_SHOWN = 256, READS_MAX = 1000 }; /* per minute: pairs of user and path; more reads are only counted */

struct read_entry {
    char *user, *path;
    uint64_t times;
    int64_t last_ns;
};

struct read_list {
    VEC(struct read_entry) list;
    struct map map;
    uint64_t more;
    uint64_t after; /* no other record was written since the last record of reads, which ends here */
};

struct read_list *read_list_new(void)
{
    return mem_zalloc(sizeof(struct read_list));
}

static void clear(struct read_list *v)
{
    for (size_t i = 0; i < v->list.len; i++) {
        mem_free(v->list.at[i].user);
        mem_free(v->list.at[i].path);
    }
    vec_done(&v->list);
    map_done(&v->map);
    v->more = 0;
}

void read_list_free(struct read_list *v)
{
    if (!v)
        return;
    clear(v);
    mem_free(v);
}

static bool same_view(const void *ctx, uint32_t at, const void *key)
{
    const struct read_entry *a = &((const struct read_list *)ctx)->list.at[at], *b = key;
    return strcmp(a->user, b->user) == 0 && strcmp(a->path, b->path) == 0;
}

void read_list_note(struct read_list *v, const char *user, const char *path, int64_t now_ns)
{
    char quoted[PATH_SHOWN];
    size_t len = strnlen(path, sizeof quoted - 1);
    memcpy(quoted, path, len);
    quoted[len] = 0;
    struct read_entry key = {.user = (char *)user, .path = quoted};
    uint64_t hash = hash_bytes(quoted, len, hash_bytes(user, strlen(user), 0));
    uint32_t at = map_find(&v->map, hash, same_view, v, &key);
    if (at == MAP_NONE && v->list.len >= READS_MAX) {
        v->more++;
        return;
    }
    if (at == MAP_NONE) {
        struct read_entry fresh = {.user = mem_strdup(user), .path = mem_strdup(quoted)};
        at = (uint32_t)v->list.len;
        map_add(&v->map, hash, at);
        vec_push(&v->list, fresh);
    }
    v->list.at[at].times++;
    v->list.at[at].last_ns = now_ns;
}

void read_list_write(struct control *c)
{
    struct read_list *v = c->reads;
    if (v->list.len == 0 || (!c->stopping && store_log_last(c->store) <= v->after))
        return; /* an idle cluster writes nothing, even if users read */
    CLEANUP(str) struct str extra = {0};
    str_add(&extra, "{\"views\":[");
    for (size_t i = 0; i < v->list.len; i++) {
        const struct read_entry *at = &v->list.at[i];
        str_add(&extra, i ? ",[" : "[");
        str_add_json(&extra, at->user);
        str_add_char(&extra, ',');
        str_add_json(&extra, at->path);
        str_addf(&extra, ",%" PRIu64 ",%" PRId64 "]", at->times, at->last_ns);
    }
    str_addf(&extra, "],\"more\":%" PRIu64 "}", v->more);
    if (journal_note(c, "views", &extra) == 0)
        clear(v); /* kept after a failure, for the next record */
    v->after = store_log_last(c->store) + 1;
}
