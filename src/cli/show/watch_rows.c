#include "cli/show/watch_rows.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/show/object.h"
#include "net/client/client.h"
#include "wire/text/document.h"

enum { STREAMS_MAX = 2, LINE_MAX_BYTES = 16 * 1024 * 1024, AGAIN_S = 1 };

struct row_change {
    char *id;
    bool gone;
    bool own;     /* change of the kind itself, not of an instance */
    json_t *line; /* the received event; NULL unless `own` */
};

/* State shared by the stream threads and the main thread. */
struct inbox {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    VEC(struct row_change) changes;
    bool over; /* a stream has ended */
    struct api_error trouble;
};

struct row_stream {
    struct inbox *inbox;
    struct api api; /* has its own client; the rest is borrowed */
    const char *plural;
    json_int_t revision; /* last received revision */
    struct str line;
    json_t *workloads; /* instance id to workload id: the event of a removed instance has no workload */
    bool own;
    bool away;                /* the server is unreachable, and a warning was printed */
    bool ended;               /* the server sent an end event; the reason is in `trouble` */
    struct api_error trouble; /* EXIT_OK: a new stream may continue */
    pthread_t thread;
};

static void inbox_end(struct inbox *inbox, const struct api_error *trouble)
{
    pthread_mutex_lock(&inbox->lock);
    if (!inbox->over)
        inbox->trouble = *trouble;
    inbox->over = true;
    pthread_cond_signal(&inbox->filled);
    pthread_mutex_unlock(&inbox->lock);
}

/* Handles the end event of a stream. */
static void stream_end_handle(struct row_stream *s, const char *code)
{
    static const struct {
        const char *code;
        enum exit_code exit; /* EXIT_OK: a new stream may continue */
        const char *text;
    } rows[] = {
        {"compacted",       EXIT_FAILED,  "the server no longer has the changes since then; restart the watch"},
        {"unauthenticated", EXIT_REFUSED, "the token has expired or was revoked"                              },
 /* slow, stopping */
        {NULL,              EXIT_OK,      ""                                                                  },
    };
    size_t i = 0;

    while (rows[i].code && strcmp(rows[i].code, code) != 0)
        i++;
    s->ended = true;
    s->trouble = (struct api_error){.code = rows[i].exit};
    err_set(&s->trouble.err, EPIPE, "%s", rows[i].text);
}

/* Returns the workload of the event's instance; NULL: unknown. */
static char *workload_of(struct row_stream *s, const json_t *line, bool gone)
{
    const json_t *object = json_object_get(line, "object");
    char buf[ID_TEXT_MAX];
    const char *id = object_id(gone ? line : object, buf);
    const char *workload = json_string_value(json_object_get(object, "workload"));

    if (!s->workloads)
        s->workloads = json_object();
    if (!gone && workload)
        json_object_set_new(s->workloads, id, json_string(workload));
    else
        workload = json_string_value(json_object_get(s->workloads, id));
    char *text = workload ? mem_strdup(workload) : NULL;
    if (gone)
        json_object_del(s->workloads, id);
    return text;
}

static void event_parse(struct row_stream *s, const char *at, size_t len)
{
    CLEANUP(json) json_t *line = json_loadb(at, len, 0, NULL);
    const char *type = json_string_value(json_object_get(line, "type"));
    char buf[ID_TEXT_MAX];

    if (!type)
        return; /* an empty line is a keepalive */
    if (strcmp(type, "end") == 0) {
        const char *code = json_string_value(json_object_get(line, "code"));
        stream_end_handle(s, code ? code : "");
        return;
    }
    s->away = false;
    s->revision = json_integer_value(json_object_get(line, "revision"));
    struct row_change change = {.gone = strcmp(type, "gone") == 0, .own = s->own};
    if (s->own)
        change.id = mem_strdup(object_id(change.gone ? line : json_object_get(line, "object"), buf));
    else
        change.id = workload_of(s, line, change.gone);
    if (!change.id)
        return;
    change.gone &= s->own;
    change.line = s->own ? take_ptr(&line) : NULL; /* jansson references must not be shared by threads */
    pthread_mutex_lock(&s->inbox->lock);
    vec_push(&s->inbox->changes, change);
    pthread_cond_signal(&s->inbox->filled);
    pthread_mutex_unlock(&s->inbox->lock);
}

static bool piece_parse(void *ctx, const char *at, size_t len)
{
    struct row_stream *s = ctx;

    while (len > 0) {
        const char *end = memchr(at, '\n', len);
        size_t part = end ? (size_t)(end - at) : len;
        str_add_bytes(&s->line, at, part);
        if (s->line.len > LINE_MAX_BYTES)
            return false;
        if (!end)
            return true;
        event_parse(s, str_text(&s->line), s->line.len);
        str_clear(&s->line);
        at += part + 1;
        len -= part + 1;
    }
    return true;
}

static void retry_pause(void)
{
    (void)nanosleep(&(struct timespec){.tv_sec = AGAIN_S}, NULL);
}

/* Runs one stream from the last received revision until the stream ends. Sets `trouble`; EXIT_OK if a new stream may
 * continue. */
static void stream_once(struct row_stream *s)
{
    CLEANUP(str) struct str path = {0};
    char from[32];

    str_addf(&path, "/v1/%s", s->plural);
    snprintf(from, sizeof from, "%" JSON_INTEGER_FORMAT, s->revision);
    query_add(&path, "watch", from);
    str_clear(&s->line);
    s->ended = false;
    struct api_error trouble = {0};
    int rc = api_stream(&s->api, str_text(&path), piece_parse, s, &trouble);
    if (!s->ended)
        s->trouble = rc == EXIT_OK || api_error_is_transient(&trouble) ? (struct api_error){0} : trouble;
}

static void *stream_main(void *ctx)
{
    struct row_stream *s = ctx;

    for (;;) {
        stream_once(s);
        if (s->trouble.code != EXIT_OK)
            break;
        if (s->own && !s->away && !s->ended)
            cli_warn(s->api.cli, "the server does not respond; changes are printed when it is back");
        s->away |= !s->ended;
        retry_pause();
    }
    inbox_end(s->inbox, &s->trouble);
    while (pause() < 0) /* the main thread may still use this thread's data until the process ends */
        continue;
    return NULL;
}

/* Starts a stream with its own client. The stream lives as long as the process. */
static int stream_start(struct row_stream *s, const struct row_watch *f, const char *plural, json_int_t revision)
{
    const struct connection *c = &f->api->connection;
    struct client_config config = {
        .url = c->server, .token = c->token, .ca_path = c->ca, .pin = c->pin, .agent = "berth/" BERTH_VERSION};
    struct berth_err err;

    s->api = (struct api){.cli = f->api->cli, .connection = *c};
    if (client_new(&config, &s->api.client, &err) != 0)
        return cli_fail(f->api->cli, EXIT_FAILED, "%s", err.text);
    s->plural = plural;
    s->revision = revision;
    int rc = pthread_create(&s->thread, NULL, stream_main, s);
    if (rc != 0)
        return cli_fail(f->api->cli, EXIT_FAILED, "cannot start a thread: %s", strerror(rc));
    pthread_detach(s->thread);
    return EXIT_OK;
}

/* ---- printing --------------------------------------------------------------------------------------------------- */

static bool text_is(const json_t *object, const char *path, const char *want)
{
    const char *text = json_string_value(value_at(object, path));

    return !want || (text && strcmp(text, want) == 0);
}

static bool passes(const struct row_watch *f, const json_t *object)
{
    return text_is(object, "owner", f->owner) && text_is(object, "group", f->group) &&
           (text_is(object, "status.state|state", f->state) || text_is(object, "status.outcome", f->state)) &&
           text_is(object, "node", f->node) && text_is(object, "workload", f->workload);
}

/* Returns the cells of a row as one text, without ages, which always differ. */
static char *row_text(const struct row_watch *f, const json_t *object)
{
    CLEANUP(str) struct str row = {0};

    for (size_t i = 0; i < f->collection->columns_len; i++) {
        CLEANUP(str) struct str cell = {0};
        enum color color;
        if (f->collection->columns[i].form == COLUMN_AGE || f->collection->columns[i].form == COLUMN_UNTIL)
            continue;
        column_text(&f->collection->columns[i], object, 0, &cell, &color);
        str_addf(&row, "%s\n", str_text(&cell));
    }
    return str_take(&row);
}

static void rows_remember(const struct row_watch *f, json_t *rows, const char *id, const json_t *object)
{
    CLEANUP(mem) char *row = row_text(f, object);

    json_object_set_new(rows, id, json_string(row));
}

static bool row_known(const struct row_watch *f, const json_t *rows, const char *id, const json_t *object)
{
    CLEANUP(mem) char *row = row_text(f, object);
    const char *was = json_string_value(json_object_get(rows, id));

    return was && strcmp(was, row) == 0;
}

static void deletion_print(struct row_watch *f, json_t *rows, const char *id)
{
    if (!json_object_get(rows, id))
        return; /* the object was never printed */
    json_object_del(rows, id);
    if (f->output == OUTPUT_NAME) {
        fprintf(f->api->cli->out, "%s/%s gone\n", f->collection->kind, id);
        return;
    }
    listing_add_word(f->listing, id, "gone");
    listing_print(f->listing);
}

static void object_print(struct row_watch *f, json_t *rows, const json_t *object)
{
    FILE *out = f->api->cli->out;
    char id[ID_TEXT_MAX];

    object_id(object, id);
    if (!passes(f, object) || row_known(f, rows, id, object))
        return;
    rows_remember(f, rows, id, object);
    if (f->output == OUTPUT_NAME) {
        fprintf(out, "%s/%s\n", f->collection->kind, id);
    } else if (f->output == OUTPUT_YAML) {
        CLEANUP(json) json_t *manifest = object_to_manifest(f->collection, object);
        fputs("---\n", out);
        yaml_print(f->api->cli, manifest);
    } else {
        f->listing->now_ns = wall_clock_ns();
        listing_add(f->listing, object);
        listing_print(f->listing);
    }
}

static int change_print(struct row_watch *f, json_t *rows, const struct row_change *change)
{
    struct object_target target = {f->collection, change->id};
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};
    struct api_error trouble;

    if (f->output == OUTPUT_JSON) {
        if (change->own) {
            json_dumpf(change->line, f->api->cli->out, JSON_COMPACT);
            fputc('\n', f->api->cli->out);
        }
        return EXIT_OK;
    }
    if (change->gone) {
        deletion_print(f, rows, change->id);
        return EXIT_OK;
    }
    object_path(&path, &target);
    int rc;
    while ((rc = api_try(f->api, &(struct api_request){.method = "GET", .path = str_text(&path)}, &answer, &trouble)) !=
               EXIT_OK &&
           api_error_is_transient(&trouble))
        retry_pause();
    if (rc == EXIT_NOT_FOUND)
        return EXIT_OK; /* already gone, or an instance of another kind of workload */
    if (rc != EXIT_OK)
        return api_error_print(f->api, &trouble);
    object_print(f, rows, answer.body);
    return EXIT_OK;
}

static void change_done(struct row_change *change)
{
    mem_free(change->id);
    json_decref(change->line);
}

/* Prints the received changes. For several changes of one object only the last is used, unless every event is to be
 * printed. */
static int inbox_print(struct row_watch *f, struct inbox *inbox, json_t *rows, bool *ret_over)
{
    VEC(struct row_change) taken = {0};
    int rc = EXIT_OK;

    pthread_mutex_lock(&inbox->lock);
    while (inbox->changes.len == 0 && !inbox->over)
        pthread_cond_wait(&inbox->filled, &inbox->lock);
    taken.at = inbox->changes.at;
    taken.len = inbox->changes.len;
    taken.cap = inbox->changes.cap;
    memset(&inbox->changes, 0, sizeof inbox->changes);
    *ret_over = inbox->over;
    pthread_mutex_unlock(&inbox->lock);

    for (size_t i = 0; i < taken.len; i++) {
        bool later = false;
        for (size_t j = i + 1; j < taken.len && !later && f->output != OUTPUT_JSON; j++)
            later = strcmp(taken.at[i].id, taken.at[j].id) == 0 && taken.at[i].gone <= taken.at[j].gone;
        if (!later && rc == EXIT_OK)
            rc = change_print(f, rows, &taken.at[i]);
        change_done(&taken.at[i]);
    }
    vec_done(&taken);
    fflush(f->api->cli->out);
    return rc;
}

int follow_run(struct row_watch *f, const json_t *items, json_int_t revision)
{
    /* The threads use these until the process ends, soon after this function returns. */
    struct inbox *inbox = mem_zalloc(sizeof *inbox);
    struct row_stream *streams = mem_zarray(STREAMS_MAX, sizeof *streams);
    size_t streams_len = f->collection->workload && f->output != OUTPUT_JSON ? 2 : 1;
    CLEANUP(json) json_t *rows = json_object();
    bool over = false;
    char id[ID_TEXT_MAX];
    json_t *item;
    size_t i;
    int rc = EXIT_OK;

    pthread_mutex_init(&inbox->lock, NULL);
    pthread_cond_init(&inbox->filled, NULL);
    json_array_foreach(items, i, item) rows_remember(f, rows, object_id(item, id), item);
    fflush(f->api->cli->out);
    for (i = 0; i < streams_len && rc == EXIT_OK; i++) {
        streams[i].inbox = inbox;
        streams[i].own = i == 0;
        rc = stream_start(&streams[i], f, i == 0 ? f->collection->plural : "instances", revision);
    }
    while (rc == EXIT_OK && !over)
        rc = inbox_print(f, inbox, rows, &over);
    if (rc == EXIT_OK)
        rc = api_error_print(f->api, &inbox->trouble);
    return rc;
}
