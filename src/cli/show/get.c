/* get.c - `berth get KIND [ID...]`: lists objects or prints some of them; also `berth node ls` and similar verbs. */
#include <string.h>

#include "base/mem.h"
#include "cli/lib/command.h"
#include "cli/lib/output.h"
#include "cli/lib/suggest.h"
#include "cli/show/listing.h"
#include "cli/show/object.h"
#include "cli/show/watch_rows.h"
#include "wire/text/document.h"

struct get_values {
    unsigned output;
    bool watch;
    const char *owner, *group, *state, *node, *workload, *sort;
    struct option_count limit;
};

static const struct option options[] = {
    OPTION_CHOICE_ROW("output", 'o', get_values, output, output_choices,
                      "Output format; wide adds columns, name prints only KIND/ID."),
    OPTION_FLAG_ROW("watch", 'w', get_values, watch, "Print changes as they happen, until interrupted."),
    OPTION_TEXT_ROW("owner", 0, get_values, owner, "USER", "Show only objects of this user."),
    OPTION_TEXT_ROW("group", 0, get_values, group, "GROUP", "Show only objects of this group."),
    OPTION_TEXT_ROW("state", 0, get_values, state, "STATE",
                    "Show only objects in this state, such as pending or running."),
    OPTION_TEXT_ROW("node", 0, get_values, node, "NODE", "Show only instances on this node."),
    OPTION_TEXT_ROW("workload", 0, get_values, workload, "ID", "Show only instances of this app, job or vm."),
    OPTION_TEXT_ROW("sort", 0, get_values, sort, "COLUMN",
                    "Sort by this column of the table, such as age. Default: id."),
    OPTION_COUNT_ROW("limit", 0, get_values, limit, 1, 0, "Maximum number of objects."),
};

/* Applies the filters that the server does not support for a kind. */
static bool passes(const struct get_values *v, const struct collection *c, const json_t *object)
{
    const json_t *state = value_at(object, "status.state|state");

    if (v->state && !collection_filters(c, "state") && json_is_string(state))
        return strcmp(json_string_value(state), v->state) == 0;
    return true;
}

static int filter_add(const struct cli *cli, const struct collection *c, struct str *path, const char *name,
                      const char *value)
{
    bool here = strcmp(name, "state") == 0 && strcmp(c->kind, "node") == 0;

    if (!value || here)
        return EXIT_OK;
    if (!collection_filters(c, name))
        return cli_fail(cli, EXIT_USAGE, "--%s does not apply to %s", name, c->plural);
    query_add(path, name, value);
    return EXIT_OK;
}

static int list_path(const struct cli *cli, const struct get_values *v, const struct collection *c, struct str *path)
{
    const struct {
        const char *name, *value;
    } filters[] = {
        {"owner",    v->owner   },
        {"group",    v->group   },
        {"state",    v->state   },
        {"node",     v->node    },
        {"workload", v->workload},
    };

    str_addf(path, "/v1/%s", c->plural);
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        int rc = filter_add(cli, c, path, filters[i].name, filters[i].value);
        if (rc != EXIT_OK)
            return rc;
    }
    return EXIT_OK;
}

static int list_fetch(struct api *a, const struct get_values *v, const struct collection *c, json_t **ret_items,
                      json_int_t *ret_revision)
{
    CLEANUP(str) struct str path = {0};
    CLEANUP(json) json_t *all = NULL;
    json_t *item;
    size_t i;

    int rc = list_path(a->cli, v, c, &path);
    if (rc == EXIT_OK)
        rc = api_list(a, str_text(&path), v->limit.given ? v->limit.n : 0, &all, ret_revision);
    if (rc != EXIT_OK)
        return rc;
    json_t *items = json_array();
    json_array_foreach(all, i, item)
    {
        if (passes(v, c, item))
            json_array_append(items, item);
    }
    *ret_items = items;
    return EXIT_OK;
}

static int sort_items(const struct cli *cli, const struct get_values *v, const struct collection *c, json_t *items)
{
    struct suggestions near;

    if (!v->sort || objects_sort(c, items, v->sort) == 0)
        return EXIT_OK;
    suggest_init(&near, v->sort);
    for (size_t i = 0; i < c->columns_len; i++)
        suggest_offer(&near, c->columns[i].title);
    return cli_fail(cli, EXIT_USAGE, "%s have no column '%s'; 'berth get %s -o wide' shows all", c->plural, v->sort,
                    c->plural);
}

static void names_print(const struct cli *cli, const struct collection *c, const json_t *items)
{
    char id[ID_TEXT_MAX];
    json_t *item;
    size_t i;

    json_array_foreach(items, i, item) fprintf(cli->out, "%s/%s\n", c->kind, object_id(item, id));
}

static void data_print(const struct cli *cli, const struct collection *c, const json_t *items, bool single, bool yaml)
{
    CLEANUP(json) json_t *list = json_array();
    json_t *item;
    size_t i;

    json_array_foreach(items, i, item) json_array_append_new(list, object_to_manifest(c, item));
    if (!yaml) {
        CLEANUP(json) json_t *whole = json_pack("{s:O}", "items", list);
        json_print(cli, single ? json_array_get(list, 0) : whole);
        return;
    }
    json_array_foreach(list, i, item)
    {
        fputs(i ? "---\n" : "", cli->out);
        yaml_print(cli, item);
    }
}

static void items_print(const struct cli *cli, const struct get_values *v, struct listing *listing,
                        const struct collection *c, const json_t *items, bool single)
{
    json_t *item;
    size_t i;

    switch ((enum output_form)v->output) {
    case OUTPUT_JSON: data_print(cli, c, items, single, false); return;
    case OUTPUT_YAML: data_print(cli, c, items, single, true); return;
    case OUTPUT_NAME: names_print(cli, c, items); return;
    case OUTPUT_TABLE:
    case OUTPUT_WIDE: break;
    }
    if (json_array_size(items) == 0 && !v->watch) {
        if (cli->progress) /* the message is for people only; programs expect empty output */
            fprintf(cli->err, "No %s.\n", c->plural);
        return;
    }
    json_array_foreach(items, i, item) listing_add(listing, item);
    listing_print(listing);
}

static int list_run(struct api *a, const struct get_values *v, const struct collection *c)
{
    CLEANUP(listing) struct listing listing = {0};
    CLEANUP(json) json_t *items = NULL;
    json_int_t revision = 0;

    listing_init(&listing, a->cli, c, v->output == OUTPUT_WIDE);
    int rc = list_fetch(a, v, c, &items, &revision);
    if (rc == EXIT_OK)
        rc = sort_items(a->cli, v, c, items);
    if (rc != EXIT_OK)
        return rc;
    bool quiet = v->watch && v->output == OUTPUT_JSON; /* only one JSON object per line */
    if (!quiet)
        items_print(a->cli, v, &listing, c, items, false);
    if (!v->watch)
        return EXIT_OK;
    struct row_watch follow = {
        .api = a,
        .collection = c,
        .listing = &listing,
        .output = (enum output_form)v->output,
        .owner = v->owner,
        .group = v->group,
        .state = v->state,
        .node = v->node,
        .workload = v->workload,
    };
    return follow_run(&follow, items, revision);
}

/* Prints one table for each kind. Returns the exit code of the first error. */
static int some_run(struct api *a, const struct get_values *v, const struct object_targets *targets)
{
    int rc = EXIT_OK;

    for (size_t i = 0; i < targets->len;) {
        const struct collection *c = targets->at[i].collection;
        CLEANUP(listing) struct listing listing = {0};
        CLEANUP(json) json_t *items = json_array();
        for (; i < targets->len && targets->at[i].collection == c; i++) {
            json_t *object = NULL;
            int failed = object_get(a, &targets->at[i], &object);
            if (failed == EXIT_OK)
                json_array_append_new(items, object);
            rc = rc == EXIT_OK ? failed : rc;
        }
        listing_init(&listing, a->cli, c, v->output == OUTPUT_WIDE);
        if (json_array_size(items) > 0)
            items_print(a->cli, v, &listing, c, items, targets->len == 1);
    }
    return rc;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct get_values *v = values;
    CLEANUP(targets) struct object_targets targets = {0};
    CLEANUP(api) struct api api = {0};
    const struct collection *fixed = cli->command->arg ? collection_find(cli->command->arg) : NULL;
    int rc = EXIT_OK;

    if (fixed)
        vec_push(&targets, ((struct object_target){fixed, NULL}));
    else
        rc = targets_parse(cli, operands, true, &targets);
    if (rc == EXIT_OK && v->watch && (targets.len != 1 || targets.at[0].id))
        rc = cli_fail(cli, EXIT_USAGE, "--watch needs a single KIND without IDs");
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    return targets.at[0].id ? some_run(&api, v, &targets) : list_run(&api, v, targets.at[0].collection);
}

const struct command get_command = {
    .name = "get",
    .operands = "KIND [ID...]",
    .operands_min = 1,
    .operands_max = OPERANDS_ANY,
    .summary = "List the objects of a kind, or show the named ones.",
    .text = "KIND is one of apps, jobs, vms, instances, nodes, volumes, secrets, users, groups, "
            "roles, tokens, profiles, resources, queues, policies, windows, domains, crons; the "
            "singular and KIND/ID work as well. Apps and vms have IDs NAME.OWNER; NAME alone is your "
            "own.\n\n"
            "The output of -o yaml is a manifest for 'berth apply'. With --watch and -o json every "
            "change is one line, as the API sends it.",
    .examples = "  berth get jobs --state pending\n"
                "  berth get nodes -o wide --sort cpu\n"
                "  berth get app photos -o yaml > photos.yaml\n"
                "  berth get instances --node n1 --watch",
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .values_size = sizeof(struct get_values),
    .section = SECTION_OBJECTS,
    .talks = true,
    .words = collection_words,
    .ids = IDS_OF_KIND,
    .run = run,
};

/* Lists one kind, as a verb of its family. */
#define LIST_COMMAND(family, word, plural, where)                                                                      \
    const struct command family##_##word##_command = {                                                                 \
        .name = #family " " #word,                                                                                     \
        .operands = "",                                                                                                \
        .summary = "List " plural "; the same as 'berth get " plural "'.",                                             \
        .options = options,                                                                                            \
        .options_len = sizeof options / sizeof options[0],                                                             \
        .values_size = sizeof(struct get_values),                                                                      \
        .section = where,                                                                                              \
        .talks = true,                                                                                                 \
        .arg = plural,                                                                                                 \
        .run = run,                                                                                                    \
    }

#define LS_COMMAND(family, plural, where) LIST_COMMAND(family, ls, plural, where)
LS_COMMAND(app, "apps", SECTION_WORK);
LS_COMMAND(job, "jobs", SECTION_WORK);
LS_COMMAND(vm, "vms", SECTION_WORK);
LS_COMMAND(secret, "secrets", SECTION_WORK);
LS_COMMAND(node, "nodes", SECTION_CLUSTER);
LIST_COMMAND(optask, list, "optasks", SECTION_CLUSTER);
LS_COMMAND(user, "users", SECTION_PEOPLE);
LS_COMMAND(group, "groups", SECTION_PEOPLE);
LS_COMMAND(token, "tokens", SECTION_PEOPLE);
