/* logs.c - `berth logs`: prints the logs of pods and follows them. */
#include <pthread.h>
#include <string.h>

#include "base/vec.h"
#include "cli/app/session.h"
#include "cli/lib/command.h"
#include "cli/show/log_stream.h"
#include "net/client/client.h"

/* The daemon refuses more followed logs at once. */
enum { FOLLOWED_MAX = 50, LINE_BYTES_MAX = 256 * 1024 };

struct logs_values {
    bool follow, previous;
    struct option_count tail;
};

static const struct option options[] = {
    OPTION_FLAG_ROW("follow", 'f', logs_values, follow, "Follow the log."),
    OPTION_COUNT_ROW("tail", 0, logs_values, tail, 0, 1000000000, "Show only the last N lines. Default: all."),
    OPTION_FLAG_ROW("previous", 'p', logs_values, previous, "Show the log of the previous instance, which has ended."),
};

/* The log reader of one pod. */
struct log_reader {
    struct api *api;
    struct str path, line;
    const char *label; /* prefix of each line; NULL: none */
    const char *name;  /* the pod's name, for warnings */
    enum color color;
    pthread_mutex_t *lock; /* serialises the output */
    struct reconnect_notice *notice;
    bool follow;
    pthread_t thread;
    bool gone; /* the output cannot be written */
    struct api_error trouble;
    int rc;
};

static void line_print(struct log_reader *r)
{
    FILE *out = r->api->cli->out;

    pthread_mutex_lock(r->lock);
    fprintf(out, "%s[%s]%s ", cli_paint(r->api->cli, r->color), r->label, cli_paint(r->api->cli, COLOR_NONE));
    fwrite(str_text(&r->line), 1, r->line.len, out);
    fputc('\n', out);
    r->gone |= fflush(out) != 0;
    pthread_mutex_unlock(r->lock);
    str_clear(&r->line);
}

static bool piece_print(void *ctx, const char *at, size_t len)
{
    struct log_reader *r = ctx;

    if (!r->label) { /* without labels, byte for byte */
        bool written = fwrite(at, 1, len, r->api->cli->out) == len && fflush(r->api->cli->out) == 0;
        r->gone = !written;
        return written;
    }
    while (len > 0 && !r->gone) {
        const char *end = memchr(at, '\n', len);
        size_t part = end ? (size_t)(end - at) : len;
        str_add_bytes(&r->line, at, part);
        if (end || r->line.len > LINE_BYTES_MAX)
            line_print(r);
        part += end != NULL;
        at += part;
        len -= part;
    }
    return !r->gone;
}

static void *reading_main(void *ctx)
{
    struct log_reader *r = ctx;

    const struct log_stream stream = {.api = r->api,
                                      .path = str_text(&r->path),
                                      .label = r->name,
                                      .piece = piece_print,
                                      .ctx = r,
                                      .notice = r->notice};
    if (r->follow)
        r->rc = log_stream_follow(&stream, &r->trouble);
    else
        r->rc = api_stream(r->api, str_text(&r->path), piece_print, r, &r->trouble);
    if (r->label && r->line.len > 0)
        line_print(r);
    if (r->gone)
        r->rc = EXIT_FAILED;
    return NULL;
}

/* Builds the request path. For a pod of an app, job or vm the daemon finds the right instance, even an ended one. */
static void path_make(struct str *path, const struct pod_name *name, const struct listed_pod *pod,
                      const struct logs_values *v)
{
    char number[24];
    bool named = strcmp(name->kind, "instance") != 0;

    if (named) {
        str_addf(path, "/v1/%ss", name->kind);
        path_add(path, name->id);
    } else {
        str_add(path, "/v1/instances");
        path_add(path, pod ? pod->instance : name->id);
    }
    str_add(path, "/logs");
    if (named && (pod || name->has_ordinal))
        query_add(path, "ordinal", str_u64(pod ? pod->ordinal : name->ordinal, number));
    query_add(path, "tail", v->tail.given ? str_u64(v->tail.n, number) : NULL);
    query_add(path, "follow", v->follow ? "true" : NULL);
    query_add(path, "previous", named && v->previous ? "true" : NULL);
}

static int reading_error_print(const struct api *a, const struct log_reader *r)
{
    if (r->gone)
        return EXIT_FAILED; /* the output is closed: no message is possible */
    return r->rc == EXIT_OK ? EXIT_OK : api_error_print(a, &r->trouble);
}

/* State that all log readers of one command share. */
struct shared_output {
    pthread_mutex_t lock;
    struct reconnect_notice notice;
    bool follow;
};
#define SHARED_INIT(follow_)                                                                                           \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .notice = RECONNECT_NOTICE_INIT, .follow = (follow_)                        \
    }

static void reading_init(struct log_reader *r, struct api *a, const struct pod_name *name,
                         const struct listed_pods *pods, size_t i, struct shared_output *shared_output)
{
    static const enum color colors[] = {COLOR_GREEN, COLOR_BLUE, COLOR_YELLOW, COLOR_RED, COLOR_BOLD};

    *r = (struct log_reader){
        .api = a, .lock = &shared_output->lock, .notice = &shared_output->notice, .follow = shared_output->follow};
    r->name = i < pods->len ? pods->at[i].label : name->id;
    if (pods->len > 1) {
        r->label = pods->at[i].label;
        r->color = colors[i % (sizeof colors / sizeof colors[0])];
    }
}

/* Prints the logs one after the other. */
static int print_all(struct api *a, const struct pod_name *name, const struct listed_pods *pods,
                     const struct logs_values *v)
{
    struct shared_output shared_output = SHARED_INIT(v->follow);
    int rc = EXIT_OK;
    bool gone = false;

    for (size_t i = 0; (i < pods->len || (i == 0 && pods->len == 0)) && !gone; i++) {
        struct log_reader r;
        reading_init(&r, a, name, pods, i, &shared_output);
        path_make(&r.path, name, pods->len ? &pods->at[i] : NULL, v);
        reading_main(&r);
        int one = reading_error_print(a, &r);
        rc = rc == EXIT_OK ? one : rc;
        gone = r.gone;
        str_done(&r.path);
        str_done(&r.line);
    }
    return rc;
}

/* Follows all logs at the same time, with one thread for each log. */
static int follow_all(struct api *a, const struct pod_name *name, const struct listed_pods *pods,
                      const struct logs_values *v)
{
    struct shared_output shared_output = SHARED_INIT(v->follow);
    CLEANUP(mem) struct log_reader *readings = mem_zarray(pods->len, sizeof *readings);
    CLEANUP(mem) struct api *twins = mem_zarray(pods->len, sizeof *twins);
    size_t started = 0;
    int rc = EXIT_OK;

    for (; started < pods->len && rc == EXIT_OK; started++) {
        struct log_reader *r = &readings[started];
        rc = api_clone(a, &twins[started]);
        if (rc != EXIT_OK)
            break;
        reading_init(r, &twins[started], name, pods, started, &shared_output);
        path_make(&r->path, name, &pods->at[started], v);
        int failed = pthread_create(&r->thread, NULL, reading_main, r);
        if (failed) {
            rc = cli_fail(a->cli, EXIT_FAILED, "cannot start a thread: %s", strerror(failed));
            str_done(&r->path);
            client_free(twins[started].client);
            break;
        }
    }
    for (size_t i = 0; i < started; i++) {
        (void)pthread_join(readings[i].thread, NULL);
        int one = reading_error_print(a, &readings[i]);
        rc = rc == EXIT_OK ? one : rc;
        str_done(&readings[i].path);
        str_done(&readings[i].line);
        client_free(twins[i].client);
    }
    return rc;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct logs_values *v = values;
    CLEANUP(api) struct api api = {0};
    CLEANUP(pod_name) struct pod_name name = {0};
    CLEANUP(pods) struct listed_pods pods = {0};

    int rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = pod_name_read(&api, operands->at[0], &name);
    bool instance = rc == EXIT_OK && strcmp(name.kind, "instance") == 0;
    if (instance && v->previous)
        return cli_fail(cli, EXIT_USAGE, "--previous applies to apps and jobs, not to an instance");
    if (rc == EXIT_OK && !instance)
        rc = pods_list(&api, &name, &pods);
    if (rc != EXIT_OK)
        return rc;
    if (!v->follow || pods.len <= 1)
        return print_all(&api, &name, &pods, v);
    if (pods.len > FOLLOWED_MAX)
        return cli_fail(cli, EXIT_USAGE,
                        "%s has %zu pods, but at most %d can be followed at once; name one, such as %s",
                        operands->at[0], pods.len, FOLLOWED_MAX, pods.at[0].label);
    return follow_all(&api, &name, &pods, v);
}

const struct command logs_command = {
    .name = "logs",
    .operands = "POD",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "Print the logs of an app, a job or one of their pods.",
    .text = "POD is an APP or JOB for all its pods, APP/ORDINAL for one of them, or instance/ID. "
            "Lines of several pods are prefixed with the pod's name; the log of a single pod is "
            "printed verbatim. The log of a pod that has ended is available as long as its node "
            "keeps it. With -f the log continues where it stopped after a restart of the daemon or "
            "of the node's agent; after ten minutes without the server the command gives up.",
    .examples = "  berth logs -f photos\n"
                "  berth logs --tail 100 17/0\n"
                "  berth logs --previous photos/1",
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .values_size = sizeof(struct logs_values),
    .section = SECTION_WORK,
    .talks = true,
    .ids = "apps",
    .run = run,
};
