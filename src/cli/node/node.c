/* node.c - `berth node add|capabilities|settings`; the other node verbs are in node_leave.c, and in cli/show: actions.c
 * and get.c.
 */
#include <string.h>

#include "base/mem.h"
#include "cli/app/workload.h"
#include "cli/lib/command.h"
#include "cli/lib/output.h"
#include "cli/show/manifest.h"
#include "cli/show/object.h"
#include "wire/text/document.h"

static struct object_target node_target(const char *id)
{
    return (struct object_target){collection_find("node"), id};
}

/* ---- add -------------------------------------------------------------------------------------------------------- */

struct add_values {
    const char *file, *cpu, *memory, *zone, *rack, *arch, *expires;
    struct option_count gpus;
    struct option_list labels, taints, resources;
    bool invite, dry_run;
};

static const struct option add_options[] = {
    OPTION_TEXT_ROW("filename", 'f', add_values, file, "FILE",
                    "Read the node from a YAML or JSON manifest; 'kind: node' is optional; '-' is standard "
                    "input."),
    OPTION_TEXT_ROW("cpu", 0, add_values, cpu, "CORES", "Allocatable CPU: 8, 7500m."),
    OPTION_TEXT_ROW("memory", 0, add_values, memory, "SIZE", "Allocatable memory: 30Gi."),
    OPTION_COUNT_ROW("gpus", 0, add_values, gpus, 0, 1024,
                     "Number of identical GPUs; a manifest can describe them in detail."),
    OPTION_LIST_ROW("resource", 0, add_values, resources, "NAME=AMOUNT",
                    "Another allocatable resource; may be given several times."),
    OPTION_TEXT_ROW("zone", 0, add_values, zone, "ZONE", "Failure domain: building or data centre."),
    OPTION_TEXT_ROW("rack", 0, add_values, rack, "RACK", "Failure domain: rack or room."),
    OPTION_TEXT_ROW("arch", 0, add_values, arch, "ARCH", "CPU architecture, such as amd64."),
    OPTION_LIST_ROW("label", 'l', add_values, labels, "KEY=VALUE", "Label of the node; may be given several times."),
    OPTION_LIST_ROW("taint", 0, add_values, taints, "KEY=VALUE:EFFECT",
                    "Taint of the node; may be given several times."),
    OPTION_FLAG_ROW("invite", 0, add_values, invite,
                    "Let the machine join even if its resources are described; it offers no more than "
                    "described."),
    OPTION_TEXT_ROW("expires", 0, add_values, expires, "TIME", "Lifetime of the join token. Default: 1h."),
    DRY_RUN_ROW(add_values, dry_run),
};

/* Sets the members of an object from KEY=VALUE words: amounts, or strings for labels. */
static int pairs_set(const struct cli *cli, json_t *object, const char *member, const char *option,
                     const struct option_list *words, bool amounts)
{
    json_t *map = json_object_get(object, member);

    for (size_t i = 0; i < words->len; i++) {
        const char *equals = strchr(words->at[i], '=');
        if (!equals || equals == words->at[i])
            return cli_fail(cli, EXIT_USAGE, "--%s takes NAME=VALUE, not '%s'", option, words->at[i]);
        if (!map) {
            map = json_object();
            json_object_set_new(object, member, map);
        }
        CLEANUP(mem) char *key = mem_strdup(words->at[i]);
        key[equals - words->at[i]] = '\0';
        json_object_set_new(map, key, amounts ? amount_value(equals + 1) : json_string(equals + 1));
    }
    return EXIT_OK;
}

static void member_text(json_t *object, const char *member, const char *key, const char *text)
{
    json_t *below = member ? json_object_get(object, member) : object;

    if (!text)
        return;
    if (!below) {
        below = json_object();
        json_object_set_new(object, member, below);
    }
    json_object_set_new(below, key, member ? amount_value(text) : json_string(text));
}

static int add_fill(const struct cli *cli, const struct add_values *v, json_t *object)
{
    member_text(object, "allocatable", "cpu", v->cpu);
    member_text(object, "allocatable", "memory", v->memory);
    member_text(object, NULL, "zone", v->zone);
    member_text(object, NULL, "rack", v->rack);
    member_text(object, NULL, "arch", v->arch);
    if (v->gpus.given)
        json_object_set_new(object, "gpus", json_pack("[{s:I}]", "count", (json_int_t)v->gpus.n));
    int rc = pairs_set(cli, object, "allocatable", "resource", &v->resources, true);
    if (rc == EXIT_OK)
        rc = pairs_set(cli, object, "labels", "label", &v->labels, false);
    for (size_t i = 0; i < v->taints.len; i++) {
        if (!json_object_get(object, "taints"))
            json_object_set_new(object, "taints", json_array());
        json_array_append_new(json_object_get(object, "taints"), json_string(v->taints.at[i]));
    }
    return rc;
}

static int add_read(const struct cli *cli, const char *path, json_t **ret)
{
    struct berth_err err;

    if (!path) {
        *ret = json_object();
        return EXIT_OK;
    }
    if (document_read(path, ret, &err) != 0)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    if (!json_is_object(*ret))
        return cli_fail(cli, EXIT_FAILED, "%s: expected one node", path);
    const char *kind = json_string_value(json_object_get(*ret, "kind"));
    if (kind && collection_find(kind) != collection_find("node"))
        return cli_fail(cli, EXIT_FAILED, "%s: kind: expected a node, found %s", path, kind);
    object_from_manifest(collection_find("node"), *ret);
    return EXIT_OK;
}

/* Prints the command that joins another machine as this node; creates the node if it does not exist. */
static int invite(struct api *a, const struct add_values *v, json_t *object)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};
    CLEANUP(mem) char *id = mem_strdup(json_string_value(json_object_get(object, "id")));

    str_add(&path, "/v1/nodes");
    path_add(&path, id);
    path_add(&path, "invite");
    json_object_del(object, "id");
    if (v->expires)
        json_object_set_new(object, "expires", json_string(v->expires));
    const struct api_request request = {
        .method = "POST", .path = path.at, .body = object, .dry_run = v->dry_run, .secret = true};
    int rc = api_do(a, &request, &answer);
    if (rc != EXIT_OK)
        return rc;
    const char *line = json_string_value(json_object_get(answer.body, "command"));
    if (!line) {
        object_done_print(a->cli, "node", id, "invited", v->dry_run);
        return EXIT_OK;
    }
    fprintf(a->cli->out, "%s\n", line);
    if (a->cli->progress) {
        const char *until = json_string_value(json_object_get(answer.body, "expires"));
        size_t len = until ? strcspn(until, ".") : 0; /* omits the nanoseconds */
        cli_hint(a->cli, "run this on the other machine, as root; it works once,");
        cli_hint(a->cli, "until %.*sZ", (int)len, until ? until : "");
        if (strstr(line, "https://127.") || strstr(line, "https://[::1]") || strstr(line, "https://localhost")) {
            cli_hint(a->cli, "berthd listens only on its own machine; to add other machines start it");
            cli_hint(a->cli, "with --agents ADDRESS:PORT, an address that they can reach");
        }
    }
    return EXIT_OK;
}

/* Returns whether the options describe the machine's resources. A machine that joins with an agent reports its
 * resources itself. */
static bool is_described(const struct add_values *v)
{
    return v->file || v->cpu || v->memory || v->gpus.given || v->resources.len;
}

static int add_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct add_values *v = values;
    CLEANUP(json) json_t *object = NULL;
    CLEANUP(api) struct api api = {0};

    int rc = add_read(cli, v->file, &object);
    if (rc == EXIT_OK)
        rc = add_fill(cli, v, object);
    if (rc == EXIT_OK && operands->len)
        json_object_set_new(object, "id", json_string(operands->at[0]));
    if (rc == EXIT_OK && !json_object_get(object, "id"))
        rc = cli_fail(cli, EXIT_USAGE, "node add needs an ID, or -f FILE with an id");
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    if (v->invite || v->expires || !is_described(v))
        return invite(&api, v, object);
    struct object_target target = node_target(NULL);
    struct object_act act = {.method = "POST", .body = object, .done = "added", .dry_run = v->dry_run};
    return object_do(&api, &target, &act, NULL);
}

const struct command node_add_command = {
    .name = "node add",
    .operands = "[ID]",
    .operands_max = 1,
    .summary = "Invite a machine to join as a node, or describe a node.",
    .text = "Prints a command to run on the other machine: its agent joins with the one-time token "
            "in it, reports the machine's hardware and receives a certificate. For an existing node "
            "it prints a new command.\n\n"
            "If --cpu, --memory or a file describes the resources, the node is only added as "
            "described, unless --invite is given; its agent then needs a token ('berth token add "
            "--node ID'). Options override the file.",
    .examples = "  berth node add n1 --zone cellar --label disk=ssd\n"
                "  berth node add n2 --cpu 8 --memory 30Gi --invite --expires 10m\n"
                "  berth node add -f n3.yaml --dry-run",
    .options = add_options,
    .options_len = sizeof add_options / sizeof add_options[0],
    .values_size = sizeof(struct add_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .run = add_run,
};

/* ---- capabilities and settings ---------------------------------------------------------------------------------- */

struct node_part {
    const char *name;        /* last part of the route */
    const char *const *keys; /* ends with NULL */
};

static const char *const capability_keys[] = {
    "allocatable", "gpus", "runtimes", "images", "ports", "page_size", "overcommit", NULL,
};
static const char *const setting_keys[] = {"labels", "taints", "zone", "rack", "domain", "rank", NULL};
static const struct node_part capabilities = {"capabilities", capability_keys};
static const struct node_part settings = {"settings", setting_keys};

struct part_values {
    const char *file;
    unsigned form;
    bool dry_run;
};

static const struct option part_options[] = {
    OPTION_TEXT_ROW("filename", 'f', part_values, file, "FILE",
                    "Replace all of them with this YAML or JSON file; keys that are not in it are removed."),
    OPTION_CHOICE_ROW("output", 'o', part_values, form, view_choices, "Output format."),
    DRY_RUN_ROW(part_values, dry_run),
};

/* Returns the keys of the part that the node has, as a new reference. */
static json_t *part_of(const struct node_part *part, const json_t *node)
{
    json_t *object = json_object();

    for (const char *const *key = part->keys; *key; key++) {
        json_t *value = json_object_get(node, *key);
        if (value)
            json_object_set_new(object, *key, json_deep_copy(value));
    }
    return object;
}

/* Removes keys that were set to null. The route replaces the whole part, so unnamed keys are sent unchanged. */
static void nulls_remove(json_t *object)
{
    const char *key;
    json_t *value;
    void *next;

    json_object_foreach_safe(object, next, key, value)
    {
        if (json_is_null(value))
            json_object_del(object, key);
        else if (json_is_object(value))
            nulls_remove(value);
    }
}

static int part_run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct part_values *v = values;
    const struct node_part *part = cli->command->arg;
    CLEANUP(json) json_t *node = NULL;
    CLEANUP(json) json_t *object = NULL;
    CLEANUP(api) struct api api = {0};
    struct object_target target = node_target(operands->at[0]);
    struct berth_err err;

    int rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = object_get(&api, &target, &node);
    if (rc != EXIT_OK)
        return rc;
    if (v->file) {
        if (document_read(v->file, &object, &err) != 0)
            return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    } else {
        object = part_of(part, node);
    }
    if (!v->file && operands->len == 1) {
        if (!view_print(cli, v->form, object))
            fields_print(cli, object, 0);
        return EXIT_OK;
    }
    rc = pairs_parse(cli, operands->at + 1, operands->len - 1, object);
    if (rc != EXIT_OK)
        return rc;
    nulls_remove(object);
    struct object_act act = {
        .method = "PUT", .sub = part->name, .body = object, .done = "changed", .dry_run = v->dry_run};
    return object_do(&api, &target, &act, NULL);
}

const struct command node_capabilities_command = {
    .name = "node capabilities",
    .operands = "ID [KEY=VALUE...]",
    .operands_min = 1,
    .operands_max = OPERANDS_ANY,
    .summary = "Show or change the capabilities of a node.",
    .text = "Keys are allocatable, gpus, runtimes, images, ports, page_size and overcommit; a dot "
            "selects a nested key: allocatable.memory=30Gi. VALUE may be JSON; null removes a key.",
    .examples = "  berth node capabilities n1\n"
                "  berth node capabilities n1 allocatable.cpu=7 'runtimes=[\"oci\", \"process\"]'\n"
                "  berth node capabilities n1 -f n1-offers.yaml",
    .options = part_options,
    .options_len = sizeof part_options / sizeof part_options[0],
    .values_size = sizeof(struct part_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .ids = "nodes",
    .arg = &capabilities,
    .run = part_run,
};

const struct command node_settings_command = {
    .name = "node settings",
    .operands = "ID [KEY=VALUE...]",
    .operands_min = 1,
    .operands_max = OPERANDS_ANY,
    .summary = "Show or change the scheduling settings of a node.",
    .text = "Keys are labels, taints, zone, rack, domain and rank; a dot selects a nested key: "
            "labels.disk=ssd. VALUE may be JSON; null removes a key.",
    .examples = "  berth node settings n1 zone=cellar labels.disk=ssd\n"
                "  berth node settings n1 'taints=[\"travels:NoSchedule\"]'",
    .options = part_options,
    .options_len = sizeof part_options / sizeof part_options[0],
    .values_size = sizeof(struct part_values),
    .section = SECTION_CLUSTER,
    .talks = true,
    .ids = "nodes",
    .arg = &settings,
    .run = part_run,
};
