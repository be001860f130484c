#include "control/journal/refusals.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "control/api/routes.h"
#include "control/control_parts.h"
#include "control/journal/journal_note.h"

/* Limits per minute; more refusals are only counted. A message may quote the user's input, so its length is bounded. */
enum { REFUSALS_MAX = 1000, REQUEST_SHOWN = 128, TEXT_SHOWN = 256 };

struct refused_request {
    char *user, *request, *text;
    int status;
    uint64_t times;
    int64_t last_ns;
};

struct refusals {
    VEC(struct refused_request) list;
    struct map map;
    uint64_t more;
};

struct refusals *refusals_new(void)
{
    return mem_zalloc(sizeof(struct refusals));
}

static void clear(struct refusals *r)
{
    for (size_t i = 0; i < r->list.len; i++) {
        mem_free(r->list.at[i].user);
        mem_free(r->list.at[i].request);
        mem_free(r->list.at[i].text);
    }
    vec_done(&r->list);
    map_done(&r->map);
    r->more = 0;
}

void refusals_free(struct refusals *r)
{
    if (!r)
        return;
    clear(r);
    mem_free(r);
}

static bool same_refusal(const void *ctx, uint32_t at, const void *key)
{
    const struct refused_request *a = &((const struct refusals *)ctx)->list.at[at], *b = key;
    return a->status == b->status && strcmp(a->user, b->user) == 0 && strcmp(a->request, b->request) == 0 &&
           strcmp(a->text, b->text) == 0;
}

static bool is_submission(const struct request *c)
{
    static const char *const of[] = {"/v1/jobs", "/v1/apps", "/v1/vms", "/v1/crons", "/v1/txn"};
    const char *method = c->input->method;
    if (c->dry_run || !method || (strcmp(method, "POST") != 0 && strcmp(method, "PUT") != 0))
        return false;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        size_t len = strlen(of[i]);
        bool one = strcmp(method, "PUT") == 0 && c->input->path[len] == '/';
        if (strncmp(c->input->path, of[i], len) == 0 && (!c->input->path[len] || one))
            return true;
    }
    return false;
}

/* Cuts a text at a UTF-8 character boundary. */
static char *cut(const char *text, size_t max)
{
    size_t len = strnlen(text, max);
    while (text[len] && len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--;
    char *copy = mem_array(len + 1, 1);
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

void refusals_note(struct refusals *r, const struct request *c)
{
    CLEANUP(str) struct str request = {0};
    int status = c->answer.status;
    if (status < 400 || status >= 500 || !c->caller.user || !*c->caller.user || !is_submission(c))
        return;
    str_addf(&request, "%s %s", c->input->method, c->input->path);
    struct refused_request key = {.user = mem_strdup(c->caller.user),
                                  .request = cut(str_text(&request), REQUEST_SHOWN),
                                  .text = cut(c->err.code ? c->err.text : "", TEXT_SHOWN),
                                  .status = status};
    uint64_t hash = hash_bytes(key.text, strlen(key.text), hash_bytes(key.user, strlen(key.user), (uint64_t)status));
    uint32_t at = map_find(&r->map, hash, same_refusal, r, &key);
    bool fresh = at == MAP_NONE && r->list.len < REFUSALS_MAX;
    if (fresh) {
        at = (uint32_t)r->list.len;
        map_add(&r->map, hash, at);
        vec_push(&r->list, key);
    } else {
        mem_free(key.user);
        mem_free(key.request);
        mem_free(key.text);
    }
    if (at == MAP_NONE) {
        r->more++;
        return;
    }
    r->list.at[at].times++;
    r->list.at[at].last_ns = c->now_ns;
}

void refusals_write(struct control *c)
{
    struct refusals *r = c->refusals;
    CLEANUP(str) struct str extra = {0};
    if (r->list.len == 0)
        return;
    str_add(&extra, "{\"refusals\":[");
    for (size_t i = 0; i < r->list.len; i++) {
        const struct refused_request *at = &r->list.at[i];
        str_add(&extra, i ? ",[" : "[");
        str_add_json(&extra, at->user);
        str_add_char(&extra, ',');
        str_add_json(&extra, at->request);
        str_addf(&extra, ",%d,", at->status);
        str_add_json(&extra, at->text);
        str_addf(&extra, ",%" PRIu64 ",%" PRId64 "]", at->times, at->last_ns);
    }
    str_addf(&extra, "],\"more\":%" PRIu64 "}", r->more);
    if (journal_note(c, "refusals", &extra) == 0)
        clear(r); /* kept after a failure, for the next record */
}
