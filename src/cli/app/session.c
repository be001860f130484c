#include "cli/app/session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/vec.h"
#include "berth.h"
#include "cli/job/pods.h"
#include "cli/show/object.h"
#include "net/client/client.h"
#include "wire/text/document.h"

/* The daemon waits up to one minute for a slow agent. */
#define FEED_TIMEOUT_NS (INT64_C(120) * 1000000000)
enum { LINE_MAX_BYTES = 1024 * 1024 };

/* ---- names ------------------------------------------------------------------------------------------------------ */

static bool all_digits(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

static bool has_pods(const char *kind)
{
    return strcmp(kind, "app") == 0 || strcmp(kind, "job") == 0 || strcmp(kind, "vm") == 0 ||
           strcmp(kind, "instance") == 0;
}

/* Splits off a leading kind: "app/photos" has one, "photos/0" does not. */
static const char *kind_before(const char *text, const char **ret_rest)
{
    const char *slash = strchr(text, '/');
    char word[32];

    if (!slash || (size_t)(slash - text) >= sizeof word)
        return NULL;
    memcpy(word, text, (size_t)(slash - text));
    word[slash - text] = '\0';
    const struct collection *c = collection_find(word);
    if (!c || !has_pods(c->kind) || !slash[1])
        return NULL;
    *ret_rest = slash + 1;
    return c->kind;
}

/* Returns whether the collection has an object with this number or name. */
static int object_exists(struct api *a, const char *collection, const char *id, bool *ret)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};
    struct api_error trouble;

    str_add(&path, collection);
    path_add(&path, id);
    int rc = api_try(a, &(struct api_request){.method = "GET", .path = str_text(&path)}, &answer, &trouble);
    *ret = rc == EXIT_OK;
    return rc == EXIT_OK || rc == EXIT_NOT_FOUND ? EXIT_OK : api_error_print(a, &trouble);
}

int pod_name_read(struct api *a, const char *text, struct pod_name *ret)
{
    struct pod_name name = {0};
    const char *rest = text, *kind = kind_before(text, &rest);
    size_t len = strlen(rest);
    bool is_job = true, is_vm = false;
    int rc = EXIT_OK;

    if (!kind || strcmp(kind, "instance") != 0)
        name.has_ordinal = pod_split(rest, &len, &name.ordinal);
    if (len == 0 || (!name.has_ordinal && strchr(rest, '/')))
        return cli_fail(a->cli, EXIT_USAGE, "'%s' is not a pod; use APP, JOB, APP/ORDINAL or instance/ID", text);
    name.id = mem_strdup(rest);
    name.id[len] = '\0';
    if (!kind && all_digits(name.id) && !name.has_ordinal)
        rc = object_exists(a, "/v1/jobs", name.id, &is_job);
    if (!kind && !all_digits(name.id)) /* an app and a vm cannot have the same name */
        rc = object_exists(a, "/v1/vms", name.id, &is_vm);
    if (rc != EXIT_OK) {
        mem_free(name.id);
        return rc;
    }
    if (!kind)
        kind = is_vm ? "vm" : !all_digits(name.id) ? "app" : is_job ? "job" : "instance";
    (void)snprintf(name.kind, sizeof name.kind, "%s", kind);
    *ret = name;
    return EXIT_OK;
}

/* ---- pods ------------------------------------------------------------------------------------------------------- */

static int state_rank(const char *state)
{
    static const char *const order[] = {"running", "starting", "stopping", "ended"};

    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (strcmp(state, order[i]) == 0)
            return (int)i;
    return (int)(sizeof order / sizeof order[0]);
}

static int pod_compare(const void *a, const void *b)
{
    const struct listed_pod *x = a, *y = b;

    if (x->ordinal != y->ordinal)
        return x->ordinal < y->ordinal ? -1 : 1;
    int states = state_rank(x->state) - state_rank(y->state);
    if (states != 0)
        return states;
    unsigned long long m = strtoull(x->instance, NULL, 10), n = strtoull(y->instance, NULL, 10);
    return m > n ? -1 : m < n;
}

static void pod_add(struct listed_pods *pods, const json_t *instance, const char *workload)
{
    const char *state = json_string_value(json_object_get(instance, "state"));
    char id[ID_TEXT_MAX];
    struct listed_pod pod = {.ordinal = (uint32_t)json_integer_value(json_object_get(instance, "ordinal"))};

    (void)snprintf(pod.instance, sizeof pod.instance, "%.23s", object_id(instance, id));
    (void)snprintf(pod.state, sizeof pod.state, "%s", state ? state : "");
    (void)snprintf(pod.label, sizeof pod.label, "%.200s/%" PRIu32, workload, pod.ordinal);
    vec_push(pods, pod);
}

/* Keeps the best instance of each ordinal. */
static void pods_keep_best(struct listed_pods *pods)
{
    size_t kept = 0;

    if (pods->len > 0)
        qsort(pods->at, pods->len, sizeof *pods->at, pod_compare);
    for (size_t i = 0; i < pods->len; i++)
        if (kept == 0 || pods->at[kept - 1].ordinal != pods->at[i].ordinal)
            pods->at[kept++] = pods->at[i];
    pods->len = kept;
}

int pods_list(struct api *a, const struct pod_name *name, struct listed_pods *ret)
{
    struct object_target target = {collection_find(name->kind), name->id};
    CLEANUP(json) json_t *object = NULL;
    struct listed_pods pods = {0};
    char id[ID_TEXT_MAX];
    size_t i;
    json_t *instance;

    int rc = object_get(a, &target, &object);
    if (rc != EXIT_OK)
        return rc;
    if (strcmp(name->kind, "instance") == 0) {
        const char *workload = json_string_value(json_object_get(object, "workload"));
        pod_add(&pods, object, workload ? workload : "");
    }
    json_array_foreach(value_at(object, "status.instances"), i, instance)
    {
        json_int_t ordinal = json_integer_value(json_object_get(instance, "ordinal"));
        if (strcmp(name->kind, "instance") != 0 && (!name->has_ordinal || ordinal == name->ordinal))
            pod_add(&pods, instance, object_id(object, id));
    }
    pods_keep_best(&pods);
    *ret = pods;
    return EXIT_OK;
}

int pod_running(struct api *a, const char *text, bool any, struct listed_pod *ret)
{
    CLEANUP(pod_name) struct pod_name name = {0};
    CLEANUP(pods) struct listed_pods pods = {0};
    const struct listed_pod *found = NULL;
    size_t running = 0;

    int rc = pod_name_read(a, text, &name);
    if (rc == EXIT_OK)
        rc = pods_list(a, &name, &pods);
    if (rc != EXIT_OK)
        return rc;
    for (size_t i = 0; i < pods.len; i++) {
        bool runs = strcmp(pods.at[i].state, "running") == 0 || strcmp(pods.at[i].state, "stopping") == 0;
        running += runs;
        if (runs && !found)
            found = &pods.at[i];
    }
    if (!found && pods.len > 0)
        return cli_fail(a->cli, EXIT_CONFLICT, "%s is not running: it is %s", pods.at[0].label, pods.at[0].state);
    if (!found)
        return cli_fail(a->cli, EXIT_CONFLICT, "%s has no pod%s; 'berth why %s' explains why", text,
                        name.has_ordinal ? " of that ordinal" : "", name.id);
    if (running > 1 && !any)
        return cli_fail(a->cli, EXIT_USAGE, "%s has %zu pods; name one of them, such as %s", text, running,
                        found->label);
    *ret = *found;
    return EXIT_OK;
}

/* ---- sessions --------------------------------------------------------------------------------------------------- */

int api_clone(const struct api *a, struct api *ret)
{
    const struct connection *c = &a->connection;
    struct client_config config = {.url = c->server,
                                   .token = c->token,
                                   .ca_path = c->ca,
                                   .pin = c->pin,
                                   .timeout_ns = FEED_TIMEOUT_NS,
                                   .agent = "berth/" BERTH_VERSION};
    struct berth_err err;
    struct api twin = {.cli = a->cli, .connection = *c};

    if (client_new(&config, &twin.client, &err) != 0)
        return cli_fail(a->cli, EXIT_FAILED, "%s", err.text);
    *ret = twin;
    return EXIT_OK;
}

json_t *words_json(const struct cli *cli, const char *const *words, size_t len)
{
    json_t *list = json_array();

    for (size_t i = 0; i < len; i++) {
        if (json_array_append_new(list, json_string(words[i])) == 0)
            continue;
        cli_fail(cli, EXIT_USAGE, "argument %zu of the command is not UTF-8", i + 1);
        json_decref(list);
        return NULL;
    }
    return list;
}

int pod_session_open(struct api *a, const struct listed_pod *pod, const json_t *body, struct pod_session *ret)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};

    str_addf(&path, "/v1/instances/%s/exec", pod->instance);
    int rc = api_do(a, &(struct api_request){.method = "POST", .path = str_text(&path), .body = body}, &answer);
    if (rc != EXIT_OK)
        return rc;
    const char *call = json_string_value(json_object_get(answer.body, "call"));
    if (!call || strlen(call) > 40)
        return cli_fail(a->cli, EXIT_FAILED, "%s returned no session; is it a berthd?", a->connection.server);
    (void)snprintf(ret->path, sizeof ret->path, "/v1/calls/%s", call);
    return EXIT_OK;
}

struct output_parser {
    const struct pod_session_output *ear;
    struct str line;
    bool over, hung_up;
    int exit_code;
    char error[512]; /* "": none */
};

static void line_take(struct output_parser *h)
{
    CLEANUP(json) json_t *line = json_loadb(str_text(&h->line), h->line.len, 0, NULL);
    CLEANUP(str) struct str bytes = {0};
    const json_t *out = json_object_get(line, "out"), *err = json_object_get(line, "err");
    const json_t *said = out ? out : err, *exit_code = json_object_get(line, "exit");
    const char *error = json_string_value(json_object_get(line, "error"));

    if (json_is_string(said) && str_add_base64_bytes(&bytes, json_string_value(said), json_string_length(said)))
        h->hung_up |= !(out ? h->ear->out : h->ear->err)(h->ear->ctx, str_text(&bytes), bytes.len);
    if (json_is_integer(exit_code))
        h->exit_code = (int)json_integer_value(exit_code);
    if (error)
        (void)snprintf(h->error, sizeof h->error, "%s", error);
    h->over |= json_is_integer(exit_code) || error;
}

static bool piece_take(void *ctx, const char *at, size_t len)
{
    struct output_parser *h = ctx;

    while (len > 0 && !h->over && !h->hung_up) {
        const char *end = memchr(at, '\n', len);
        size_t part = end ? (size_t)(end - at) : len;
        str_add_bytes(&h->line, at, part);
        if (h->line.len > LINE_MAX_BYTES)
            return false;
        if (!end)
            return true;
        if (h->line.len > 0)
            line_take(h);
        str_clear(&h->line);
        at += part + 1;
        len -= part + 1;
    }
    return !h->over && !h->hung_up;
}

int pod_session_read(struct api *a, const struct pod_session *e, const struct pod_session_output *ear, int *ret_exit)
{
    struct output_parser h = {.ear = ear};
    struct api_error trouble = {0};

    int rc = api_stream(a, e->path, piece_take, &h, &trouble);
    str_done(&h.line);
    if (h.hung_up)
        return cli_fail(a->cli, EXIT_FAILED, "cannot write the output");
    if (h.error[0])
        return cli_fail(a->cli, EXIT_FAILED, "%s", h.error);
    if (h.over) {
        *ret_exit = h.exit_code;
        return EXIT_OK;
    }
    if (rc != EXIT_OK)
        return api_error_print(a, &trouble);
    return cli_fail(a->cli, EXIT_UNREACHABLE, "the connection was closed before the command ended");
}

int pod_session_write(struct api *a, const struct pod_session *e, const void *at, size_t len, bool eof)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};
    struct api_error trouble;
    /* `secret` prevents a retry, which could send the bytes twice. */
    struct api_request request = {.method = "POST",
                                  .raw = at ? at : "",
                                  .raw_len = len,
                                  .content_type = "application/octet-stream",
                                  .secret = true};

    str_addf(&path, "%s/input%s", e->path, eof ? "?eof=true" : "");
    request.path = str_text(&path);
    int rc = api_try(a, &request, &answer, &trouble);
    return rc == EXIT_OK || rc == EXIT_NOT_FOUND ? rc : api_error_print(a, &trouble);
}

static bool output_discard(void *ctx, const char *at, size_t len)
{
    (void)ctx;
    (void)at;
    (void)len;
    return true;
}

int pod_session_run(struct api *a, const struct listed_pod *pod, const char *const *command, int *ret_exit)
{
    static const struct pod_session_output ear = {.out = output_discard, .err = output_discard};
    struct pod_session e;
    size_t len = 0;

    while (command[len])
        len++;
    CLEANUP(json) json_t *words = words_json(a->cli, command, len);
    if (!words)
        return EXIT_USAGE;
    CLEANUP(json) json_t *body = json_pack("{s:O}", "command", words);
    int rc = pod_session_open(a, pod, body, &e);
    return rc == EXIT_OK ? pod_session_read(a, &e, &ear, ret_exit) : rc;
}
