#include "cli/show/collection.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/lib/suggest.h"
#include "cli/lib/table.h"

/* A column; the optional arguments after the path set .form, .flags and .wide. */
#define COLUMN(title_, path_, ...)                                                                                     \
    {                                                                                                                  \
        .title = title_, .path = path_, __VA_ARGS__                                                                    \
    }
#define COLUMNS(rows) .columns = (rows), .columns_len = sizeof(rows) / sizeof(rows)[0]

static const struct column group_columns[] = {
    COLUMN("NAME", "id"),
    COLUMN("DISPLAY", "display", .flags = TABLE_WRAP),
    COLUMN("AGE", "created", .form = COLUMN_AGE),
};

static const struct column role_columns[] = {
    COLUMN("NAME", "id"),
    COLUMN("PERMISSIONS", "permissions", .form = COLUMN_PAIRS, .flags = TABLE_WRAP),
    COLUMN("DISPLAY", "display", .flags = TABLE_WRAP, .wide = true),
};

static const struct column user_columns[] = {
    COLUMN("NAME", "id"),
    COLUMN("GROUP", "group"),
    COLUMN("ROLE", "role"),
    COLUMN("LEVEL", "level", .flags = TABLE_RIGHT, .wide = true),
    COLUMN("DISABLED", "disabled", .form = COLUMN_YES),
    COLUMN("DISPLAY", "display", .flags = TABLE_WRAP),
    COLUMN("AGE", "created", .form = COLUMN_AGE),
};

static const struct column token_columns[] = {
    COLUMN("ID", "id"),
    COLUMN("USER", "user"),
    COLUMN("NODE", "node"),
    COLUMN("ROLE", "role"),
    COLUMN("EXPIRES", "expires", .form = COLUMN_UNTIL),
    COLUMN("NOTE", "note", .flags = TABLE_WRAP),
    COLUMN("AGE", "created", .form = COLUMN_AGE),
};

static const struct column resource_columns[] = {
    COLUMN("NAME", "id|name"),
    COLUMN("KIND", "kind"),
    COLUMN("PERIOD", "period"),
    COLUMN("AGE", "created", .form = COLUMN_AGE),
};

static const struct column profile_columns[] = {
    COLUMN("NAME", "id|name"),
    COLUMN("SCORES", "scores", .form = COLUMN_PAIRS, .flags = TABLE_WRAP),
    COLUMN("FILTERS", "filters", .form = COLUMN_WORDS, .flags = TABLE_WRAP),
    COLUMN("AGE", "created", .form = COLUMN_AGE),
};

static const struct column policy_columns[] = {
    COLUMN("NAME", "id"),
    COLUMN("RANKING", "ranking"),
    COLUMN("WEIGHTS", "weights", .form = COLUMN_PAIRS, .flags = TABLE_WRAP),
    COLUMN("FORMULA", "formula", .flags = TABLE_WRAP, .wide = true),
    COLUMN("DISPLAY", "display", .flags = TABLE_WRAP, .wide = true),
    COLUMN("AGE", "created", .form = COLUMN_AGE),
};

static const struct column domain_columns[] = {
    COLUMN("NAME", "id"),
    COLUMN("NODES", "status.nodes", .form = COLUMN_COUNT, .flags = TABLE_RIGHT),
    COLUMN("REQUIRE", "require", .form = COLUMN_PAIRS, .flags = TABLE_WRAP),
    COLUMN("KEEP", "keep", .form = COLUMN_PAIRS, .flags = TABLE_WRAP),
    COLUMN("DISPLAY", "display", .flags = TABLE_WRAP, .wide = true),
    COLUMN("AGE", "created", .form = COLUMN_AGE),
};

static const struct column queue_columns[] = {
    COLUMN("NAME", "id"),
    COLUMN("PARENT", "parent"),
    COLUMN("PRIORITY", "priority", .flags = TABLE_RIGHT),
    COLUMN("WEIGHT", "weight", .flags = TABLE_RIGHT),
    COLUMN("RUNNING", "status.running", .form = COLUMN_PART, .of = "status.jobs", .flags = TABLE_RIGHT),
    COLUMN("POLICY", "policy"),
    COLUMN("GROUPS", "groups", .form = COLUMN_WORDS, .flags = TABLE_WRAP),
    COLUMN("USERS", "users", .form = COLUMN_WORDS, .flags = TABLE_WRAP, .wide = true),
    COLUMN("DOMAINS", "domains", .form = COLUMN_WORDS, .flags = TABLE_WRAP, .wide = true),
    COLUMN("MAX TIME", "max_time", .wide = true),
    COLUMN("AGE", "created", .form = COLUMN_AGE),
};

static const struct column window_columns[] = {
    COLUMN("NAME", "id"),
    COLUMN("STATE", "status.state", .form = COLUMN_STATE),
    COLUMN("START", "start"),
    COLUMN("END", "end"),
    COLUMN("DURATION", "duration"),
    COLUMN("NODES", "nodes", .form = COLUMN_WORDS, .flags = TABLE_WRAP),
    COLUMN("GROUPS", "groups", .form = COLUMN_WORDS, .flags = TABLE_WRAP),
    COLUMN("USERS", "users", .form = COLUMN_WORDS, .flags = TABLE_WRAP),
    COLUMN("NOTE", "note", .flags = TABLE_WRAP),
};

static const struct column node_columns[] = {
    COLUMN("NAME", "id"),
    COLUMN("STATE", "state", .form = COLUMN_STATE),
    COLUMN("CPU", "allocatable.cpu", .form = COLUMN_AMOUNT, .flags = TABLE_RIGHT),
    COLUMN("MEMORY", "allocatable.memory", .form = COLUMN_AMOUNT, .flags = TABLE_RIGHT),
    COLUMN("GPUS", "gpus", .form = COLUMN_COUNT, .flags = TABLE_RIGHT),
    COLUMN("INSTANCES", "status.instances", .flags = TABLE_RIGHT),
    COLUMN("ZONE", "zone"),
    COLUMN("RACK", "rack", .wide = true),
    COLUMN("ARCH", "arch", .wide = true),
    COLUMN("LABELS", "labels", .form = COLUMN_PAIRS, .flags = TABLE_WRAP, .wide = true),
    COLUMN("TAINTS", "taints", .form = COLUMN_WORDS, .flags = TABLE_WRAP, .wide = true),
    COLUMN("AGE", "created", .form = COLUMN_AGE),
};

static const struct column optask_columns[] = {
    COLUMN("KEY", "id"),
    COLUMN("STATE", "status.state", .form = COLUMN_STATE),
    COLUMN("DONE", "status.done", .form = COLUMN_PART, .of = "status.all", .flags = TABLE_RIGHT),
    COLUMN("FAILURES", "status.failures", .flags = TABLE_RIGHT),
    COLUMN("READY", "ready"),
    COLUMN("ARGS", "args", .form = COLUMN_WORDS, .flags = TABLE_WRAP),
    COLUMN("INIT", "init", .form = COLUMN_YES, .wide = true),
    COLUMN("SHA256", "sha256", .wide = true),
    COLUMN("AGE", "created", .form = COLUMN_AGE),
};

static const struct column volume_columns[] = {
    COLUMN("NAME", "id"),
    COLUMN("OWNER", "owner"),
    COLUMN("ZONE", "zone"),
    COLUMN("TYPE", "type"),
    COLUMN("NODE", "node"),
    COLUMN("DRIVER", "driver", .wide = true),
    COLUMN("SHARED", "shared", .form = COLUMN_YES),
    COLUMN("AGE", "created", .form = COLUMN_AGE),
};

static const struct column secret_columns[] = {
    COLUMN("NAME", "id"),
    COLUMN("OWNER", "owner"),
    COLUMN("KEYS", "keys", .form = COLUMN_PAIRS, .flags = TABLE_WRAP),
    COLUMN("AGE", "created", .form = COLUMN_AGE),
};

static const struct column app_columns[] = {
    COLUMN("NAME", "id"),
    COLUMN("STATE", "status.state", .form = COLUMN_STATE),
    COLUMN("READY", "status.ready", .form = COLUMN_PART, .of = "status.replicas", .flags = TABLE_RIGHT),
    COLUMN("PLACED", "status.placed", .form = COLUMN_PART, .of = "status.replicas", .flags = TABLE_RIGHT, .wide = true),
    COLUMN("OWNER", "owner", .wide = true),
    COLUMN("GROUP", "group", .wide = true),
    COLUMN("IMAGE", "image", .flags = TABLE_WRAP, .wide = true),
    COLUMN("AGE", "created", .form = COLUMN_AGE),
    COLUMN("REASON", "status.reason", .flags = TABLE_WRAP),
    COLUMN("HELP", "status.help", .flags = TABLE_WRAP, .wide = true),
};

static const struct column job_columns[] = {
    COLUMN("ID", "id", .flags = TABLE_RIGHT),
    COLUMN("NAME", "name", .flags = TABLE_WRAP),
    COLUMN("STATE", "status.outcome|status.state", .form = COLUMN_STATE),
    COLUMN("RUNNING", "status.running", .form = COLUMN_PART, .of = "status.replicas", .flags = TABLE_RIGHT),
    COLUMN("ENDED", "status.ended", .flags = TABLE_RIGHT, .wide = true),
    COLUMN("DONE", "status.progress", .form = COLUMN_MILLI, .flags = TABLE_RIGHT),
    COLUMN("OWNER", "owner"),
    COLUMN("GROUP", "group", .wide = true),
    COLUMN("COMMAND", "command", .form = COLUMN_WORDS, .flags = TABLE_WRAP, .wide = true),
    COLUMN("AGE", "created", .form = COLUMN_AGE),
    COLUMN("REASON", "status.reason", .flags = TABLE_WRAP),
    COLUMN("HELP", "status.help", .flags = TABLE_WRAP, .wide = true),
};

static const struct column cron_columns[] = {
    COLUMN("NAME", "id"),
    COLUMN("SCHEDULE", "schedule"),
    COLUMN("SUSPENDED", "suspended", .form = COLUMN_YES),
    COLUMN("OVERLAP", "overlap", .wide = true),
    COLUMN("NEXT", "status.next", .form = COLUMN_UNTIL),
    COLUMN("OWNER", "owner", .wide = true),
    COLUMN("AGE", "created", .form = COLUMN_AGE),
};

static const struct column instance_columns[] = {
    COLUMN("ID", "id", .flags = TABLE_RIGHT),
    COLUMN("WORKLOAD", "workload"),
    COLUMN("ORDINAL", "ordinal", .flags = TABLE_RIGHT),
    COLUMN("NODE", "node"),
    COLUMN("STATE", "state", .form = COLUMN_STATE),
    COLUMN("READY", "ready", .form = COLUMN_YES),
    COLUMN("OUTCOME", "outcome", .form = COLUMN_STATE, .wide = true),
    COLUMN("DONE", "progress", .form = COLUMN_MILLI, .flags = TABLE_RIGHT, .wide = true),
    COLUMN("NOTE", "note", .flags = TABLE_WRAP, .wide = true),
    COLUMN("GPUS", "gpus", .form = COLUMN_WORDS, .wide = true),
    COLUMN("SINCE", "since", .form = COLUMN_AGE),
    COLUMN("ERROR", "error", .flags = TABLE_WRAP),
};

/* In the order of dependence: each kind may refer only to kinds above it. */
const struct collection collections[] = {
    {"group",    "groups",    NULL,                   true,  false, NULL,                              COLUMNS(group_columns)   },
    {"role",     "roles",     NULL,                   true,  false, NULL,                              COLUMNS(role_columns)    },
    {"user",     "users",     NULL,                   true,  false, "group",                           COLUMNS(user_columns)    },
    {"token",    "tokens",    NULL,                   false, false, "node",                            COLUMNS(token_columns)   },
    {"resource", "resources", NULL,                   true,  false, NULL,                              COLUMNS(resource_columns)},
    {"profile",  "profiles",  NULL,                   true,  false, NULL,                              COLUMNS(profile_columns) },
    {"policy",   "policies",  NULL,                   true,  false, NULL,                              COLUMNS(policy_columns)  },
    {"node",     "nodes",     "no device devices",    true,  false, NULL,                              COLUMNS(node_columns)    },
    {"domain",   "domains",   NULL,                   true,  false, NULL,                              COLUMNS(domain_columns)  },
    {"queue",    "queues",    NULL,                   true,  false, NULL,                              COLUMNS(queue_columns)   },
    {"window",   "windows",   NULL,                   true,  false, NULL,                              COLUMNS(window_columns)  },
    {"optask",   "optasks",   "op",                   true,  false, NULL,                              COLUMNS(optask_columns)  },
    {"volume",   "volumes",   "vol",                  true,  false, "owner group",                     COLUMNS(volume_columns)  },
    {"secret",   "secrets",   NULL,                   true,  false, "owner group",                     COLUMNS(secret_columns)  },
    {"app",      "apps",      "svc service services", true,  true,  "owner group state",               COLUMNS(app_columns)     },
    {"vm",       "vms",       NULL,                   true,  true,  "owner group state",               COLUMNS(app_columns)     },
    {"job",      "jobs",      NULL,                   true,  true,  "owner group state",               COLUMNS(job_columns)     },
    {"cron",     "crons",     NULL,                   true,  false, "owner group",                     COLUMNS(cron_columns)    },
    {"instance", "instances", "inst pod pods",        false, false, "owner group state workload node",
     COLUMNS(instance_columns)                                                                                                  },
};
const size_t collections_len = sizeof collections / sizeof collections[0];

const char *const collection_words[] = {
    "apps",   "jobs",     "vms",       "instances", "nodes",    "volumes", "secrets", "users", "groups",  "roles",
    "tokens", "profiles", "resources", "queues",    "policies", "windows", "domains", "crons", "optasks", NULL,
};

/* Returns whether `word` is one of the space-separated words of `list`. */
static bool word_in(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *p = list; p && *p;) {
        size_t step = strcspn(p, " ");
        if (step == len && strncasecmp(p, word, len) == 0)
            return true;
        p += step + (p[step] == ' ');
    }
    return false;
}

const struct collection *collection_find(const char *word)
{
    for (size_t i = 0; i < collections_len; i++) {
        const struct collection *c = &collections[i];
        if (strcasecmp(c->kind, word) == 0 || strcasecmp(c->plural, word) == 0 || word_in(c->others, word))
            return c;
    }
    return NULL;
}

const char *collection_near(const char *word)
{
    struct suggestions near;

    suggest_init(&near, word);
    for (size_t i = 0; i < collections_len; i++) {
        suggest_offer(&near, collections[i].kind);
        suggest_offer(&near, collections[i].plural);
    }
    return near.len ? near.at[0] : NULL;
}

bool collection_filters(const struct collection *c, const char *filter)
{
    return word_in(c->filters, filter);
}

/* ---- targets ---------------------------------------------------------------------------------------------------- */

static int kind_unknown(const struct cli *cli, const char *word)
{
    const char *near = collection_near(word);

    if (near)
        return cli_fail(cli, EXIT_USAGE, "unknown kind '%s'; did you mean '%s'?", word, near);
    return cli_fail(cli, EXIT_USAGE,
                    "unknown kind '%s'; kinds are apps, jobs, vms, instances, nodes, volumes, secrets, "
                    "users, groups, roles, tokens, profiles, resources, queues, policies, windows, domains "
                    "and crons",
                    word);
}

int targets_parse(const struct cli *cli, const struct operands *operands, bool whole, struct object_targets *ret)
{
    const struct collection *shared = NULL;

    for (size_t i = 0; i < operands->len; i++) {
        const char *word = operands->at[i], *slash = strchr(word, '/');
        char kind[32];
        if (shared) {
            vec_push(ret, ((struct object_target){shared, word}));
            continue;
        }
        snprintf(kind, sizeof kind, "%.*s", (int)(slash ? slash - word : (ptrdiff_t)strlen(word)), word);
        const struct collection *c = collection_find(kind);
        if (!c)
            return kind_unknown(cli, kind);
        if (slash)
            vec_push(ret, ((struct object_target){c, slash + 1}));
        else if (i == 0)
            shared = c;
        else
            return cli_fail(cli, EXIT_USAGE, "expected KIND/ID like the arguments before it, found '%s'", word);
    }
    if (shared && ret->len == 0) {
        if (!whole)
            return cli_fail(cli, EXIT_USAGE, "missing ID of the %s; 'berth get %s' lists the IDs", shared->kind,
                            shared->plural);
        vec_push(ret, ((struct object_target){shared, NULL}));
    }
    for (size_t i = 0; i < ret->len; i++) {
        const char *id = ret->at[i].id;
        if (id && !*id)
            return cli_fail(cli, EXIT_USAGE, "empty ID; 'berth get %s' lists the IDs", ret->at[i].collection->plural);
        if (id && strchr(id, '/'))
            return cli_fail(cli, EXIT_USAGE, "invalid ID '%s': it contains a '/'; use KIND ID... or KIND/ID...", id);
    }
    return EXIT_OK;
}

/* ---- objects ---------------------------------------------------------------------------------------------------- */

const json_t *value_at(const json_t *object, const char *path)
{
    while (*path) {
        const json_t *value = object;
        size_t len = strcspn(path, "|");
        for (const char *p = path; value && p < path + len;) {
            size_t step = strcspn(p, ".|");
            char key[64];
            snprintf(key, sizeof key, "%.*s", (int)step, p);
            value = json_object_get(value, key);
            p += step + (p[step] == '.');
        }
        if (value && !json_is_null(value))
            return value;
        path += len + (path[len] == '|');
    }
    return NULL;
}

const char *object_id(const json_t *object, char buf[static ID_TEXT_MAX])
{
    const json_t *id = value_at(object, "id|name");

    if (json_is_integer(id))
        snprintf(buf, ID_TEXT_MAX, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
    else
        snprintf(buf, ID_TEXT_MAX, "%s", json_is_string(id) ? json_string_value(id) : "");
    return buf;
}

static bool is_resource(const struct collection *c)
{
    return strcmp(c->kind, "resource") == 0;
}

json_t *object_to_manifest(const struct collection *c, const json_t *object)
{
    json_t *manifest = json_object();
    json_t *own = json_object_get(object, "kind"), *id = json_object_get(object, "id");

    json_object_set_new(manifest, "kind", json_string(c->kind));
    if (id)
        json_object_set(manifest, "id", id);
    if (own && is_resource(c))
        json_object_set(manifest, "type", own);
    json_object_update_missing(manifest, (json_t *)object);
    return manifest;
}

void object_from_manifest(const struct collection *c, json_t *object)
{
    json_t *type = json_object_get(object, "type");

    if (is_resource(c) && type) {
        json_object_set(object, "kind", type);
        json_object_del(object, "type");
    } else {
        json_object_del(object, "kind");
    }
}
