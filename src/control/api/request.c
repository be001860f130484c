#include "control/api/request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "control/api/routes.h"
#include "wire/text/words.h"

/* ---- routes ----------------------------------------------------------------------------------------------------- */

/* Returns the length of the first path segment, which ends at '/' or at the end of the path. */
static size_t segment(const char *path)
{
    return strcspn(path, "/");
}

static bool path_match(const char *pattern, const char *path, struct arena *arena, const char **args)
{
    size_t n = 0;
    for (;;) {
        size_t pattern_len = segment(pattern), path_len = segment(path);
        if (pattern_len && *pattern == '{') {
            if (path_len == 0)
                return false;
            args[n++] = arena_strndup(arena, path, path_len);
        } else if (pattern_len != path_len || strncmp(pattern, path, path_len) != 0) {
            return false;
        }
        pattern += pattern_len;
        path += path_len;
        if (!*pattern || !*path)
            return *pattern == *path;
        pattern++;
        path++;
    }
}

const struct route *route_find(const char *method, const char *path, struct arena *arena,
                               const char *ret_args[static ROUTE_ARGS_MAX], bool *ret_known)
{
    *ret_known = false;
    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    for (size_t t = 0; t < route_tables_len; t++)
        for (size_t i = 0; i < *route_tables[t].len; i++) {
            const struct route *r = &route_tables[t].routes[i];
            const char *args[ROUTE_ARGS_MAX] = {"", ""};
            if (!path_match(r->path, path, arena, args))
                continue;
            *ret_known = true;
            if (strcmp(r->method, method) != 0)
                continue;
            memcpy(ret_args, args, sizeof args);
            return r;
        }
    return NULL;
}

/* ---- for verbs -------------------------------------------------------------------------------------------------- */

void request_warn(struct request *c, const char *text)
{
    if (!c->answer.warnings)
        c->answer.warnings = json_array();
    (void)json_array_append_new(c->answer.warnings, json_string(text));
}

const char *request_query(const struct request *c, const char *name)
{
    return c->input->query ? c->input->query(c->input->query_from, name) : NULL;
}

int request_query_number(struct request *c, const char *name, uint64_t min, uint64_t max, uint64_t fallback,
                         uint64_t *ret)
{
    const char *text = request_query(c, name);
    int64_t n;
    if (!text) {
        *ret = fallback;
        return 0;
    }
    if (!str_parse_i64(text, &n) || n < 0 || (uint64_t)n < min || (uint64_t)n > max)
        return err_set(&c->err, EINVAL, "%s: expected a whole number from %" PRIu64 " to %" PRIu64, name, min, max);
    *ret = (uint64_t)n;
    return 0;
}

/* Resolves an argument to an id: folds case and, for kinds with owners, completes NAME with the caller. Returns false
 * if the argument cannot be an id. */
static bool argument_id(const struct request *c, enum kind kind, const char *arg, char *ret, size_t size)
{
    char name[ID_MAX + 1], owner[ID_MAX + 1];
    int64_t number;
    switch (kinds[kind].grammar) {
    case ID_NUMBER:
        if (!str_parse_i64(arg, &number) || number <= 0 || *arg == '0')
            return false;
        return snprintf(ret, size, "%s", arg) < (int)size;
    case ID_OWNED: {
        const char *dot = strchr(arg, '.');
        size_t len = dot ? (size_t)(dot - arg) : strlen(arg);
        char part[ID_MAX + 2];
        if (len > ID_MAX)
            return false;
        memcpy(part, arg, len);
        part[len] = 0;
        if (id_fold("id", part, name, NULL) < 0)
            return false;
        if (!dot)
            return snprintf(ret, size, "%s.%s", name, c->caller.user) < (int)size;
        if (strcmp(dot + 1, "system") == 0) /* a reserved name that users cannot take, but an existing owner */
            return snprintf(ret, size, "%s.system", name) < (int)size;
        return id_fold("id", dot + 1, owner, NULL) == 0 && snprintf(ret, size, "%s.%s", name, owner) < (int)size;
    }
    case ID_LABEL: return id_fold("id", arg, name, NULL) == 0 && snprintf(ret, size, "%s", name) < (int)size;
    case ID_FREE: break;
    }
    return snprintf(ret, size, "%s", arg) < (int)size && !strpbrk(arg, "/ ");
}

static enum permission see_permission(enum kind kind)
{
    switch (kind) {
    case KIND_NODE:
    case KIND_RESOURCE:
    case KIND_PROFILE:
    case KIND_POLICY:
    case KIND_QUEUE:
    case KIND_DOMAIN:
    case KIND_WINDOW: return PERMIT_CLUSTER;
    case KIND_GROUP:
    case KIND_ROLE: return PERMIT_SELF;
    case KIND_TOKEN: return PERMIT_USERS;
    case KIND_OPTASK:
    case KIND_OPSTEP: return PERMIT_NODES;
    case KIND_SETTING: return PERMIT_SYSTEM;
    default: return PERMIT_READ;
    }
}

bool request_may_see(const struct request *c, const struct object *o)
{
    if (c->caller.user[0] && o->owner[0] && strcmp(o->owner, c->caller.user) == 0 &&
        (o->kind == KIND_TOKEN || o->kind == KIND_USER))
        return true; /* a user always sees the own user object and own tokens */
    return permit(&c->caller, see_permission(o->kind), o->owner, o->group);
}

static const struct object *not_found(struct request *c, enum kind kind, const char *arg)
{
    char quoted[QUOTE_MAX];
    (void)err_set(&c->err, ENOENT, "no %s %s; see 'berth get %s'", kinds[kind].name, quote(arg, quoted),
                  kinds[kind].plural);
    return NULL;
}

const struct object *request_object(struct request *c, enum kind kind, const char *arg, enum permission need)
{
    char id[ID_OWNED_MAX + 128];
    if (!argument_id(c, kind, arg, id, sizeof id))
        return not_found(c, kind, arg);
    const struct object *o = state_find(c->state, kind, id);
    if (!o || !request_may_see(c, o))
        return not_found(c, kind, arg);
    bool self = kind == KIND_TOKEN && need == PERMIT_SELF && strcmp(o->owner, c->caller.user) == 0;
    if (!self && !permit(&c->caller, need, o->owner, o->group)) {
        (void)err_set(&c->err, EACCES, "role %s may not do this to %s %s; ask the owner or an administrator",
                      c->caller.role, kinds[kind].name, id);
        return NULL;
    }
    (void)change_read(&c->change, kind, id);
    return o;
}
