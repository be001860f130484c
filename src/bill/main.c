/* main.c - berth-bill: reads usage records from a server, prints bills, enforces budgets of groups and users. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "berth.h"
#include "bill/options.h"
#include "net/client/client.h"

enum { EXIT_USAGE = 2 };

/* ---- the server ------------------------------------------------------------------------------------------------- */

/* Converts an HTTP error status to an errno, with the server's message. */
static int refusal(const struct client_answer *answer, const char *path, struct berth_err *err)
{
    static const struct {
        int status, code;
    } codes[] = {
        {400, EINVAL},
        {401, EPERM },
        {403, EACCES},
        {404, ENOENT},
        {409, EBUSY },
    };
    int code = EIO;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        code = answer->status == codes[i].status ? codes[i].code : code;
    json_t *doc = json_loadb(str_text(&answer->body), answer->body.len, 0, NULL);
    const char *text = json_string_value(json_object_get(json_object_get(doc, "error"), "message"));
    int rc = err_set(err, code, "%s: the server returned status %d: %s", path, answer->status,
                     text ? text : "no error message");
    json_decref(doc);
    return rc;
}

static int ask(struct client *client, const struct client_request *request, json_t **ret, struct berth_err *err)
{
    struct client_answer answer = {0};
    int rc = client_do(client, request, &answer, err);
    if (rc == 0 && answer.status >= 400)
        rc = refusal(&answer, request->path, err);
    json_t *doc = rc == 0 ? json_loadb(str_text(&answer.body), answer.body.len, 0, NULL) : NULL;
    if (rc == 0 && !doc && ret)
        rc = err_set(err, EBADMSG, "%s: the server's response is not valid JSON", request->path);
    if (rc == 0 && ret)
        *ret = doc;
    else
        json_decref(doc);
    client_answer_done(&answer);
    return rc;
}

static int get(void *ctx, const char *path, json_t **ret, struct berth_err *err)
{
    struct client_request request = {.method = "GET", .path = path};
    return ask(ctx, &request, ret, err);
}

static int patch(void *ctx, const char *path, const json_t *body, struct berth_err *err)
{
    char *text = json_dumps(body, JSON_COMPACT);
    struct client_request request = {
        .method = "PATCH", .path = path, .body = text, .body_len = text ? strlen(text) : 0};
    int rc = ask(ctx, &request, NULL, err);
    free(text);
    return rc;
}

/* Reads the first line of a file. */
static int token_read(const char *path, char ret[static 256], struct berth_err *err)
{
    FILE *f = fopen(path, "re");
    bool got = f && fgets(ret, 256, f);
    if (f)
        (void)fclose(f);
    if (!got)
        return err_set(err, errno ? errno : EINVAL, "cannot read a token from %s: %s", path,
                       f ? "the file is empty" : strerror(errno));
    ret[strcspn(ret, "\r\n")] = 0;
    return 0;
}

static int server_open(const struct bill_options *o, struct client **ret, struct berth_err *err)
{
    char token[256] = "";
    const char *server = o->server ? o->server : getenv("BERTH_SERVER"), *given = getenv("BERTH_TOKEN");
    const char *file = o->token_file ? o->token_file : given ? NULL : getenv("BERTH_TOKEN_FILE");
    int rc = file ? token_read(file, token, err) : 0;
    if (rc < 0)
        return rc;
    struct client_config config = {.url = server ? server : "http://127.0.0.1:3980",
                                   .token = file ? token : given,
                                   .ca_path = o->ca,
                                   .pin = o->pin,
                                   .agent = "berth-bill"};
    return client_new(&config, ret, err);
}

/* ---- the run ---------------------------------------------------------------------------------------------------- */

static int64_t wall_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int run_with(const struct bill_options *o, const struct prices *prices, struct usage_book *book,
                    struct berth_err *err)
{
    struct client *client = NULL;
    struct bill_server server = {.get = get, .patch = patch};
    int rc = o->no_fetch ? 0 : server_open(o, &client, err);
    server.ctx = client;
    uint64_t missed = book->missed;
    if (rc == 0 && client)
        rc = bill_follow(book, &server, o->book, err);
    if (book->missed > missed)
        (void)fprintf(stderr,
                      "berth-bill: %llu usage records expired before they were fetched; raise usage_keep_s or "
                      "run berth-bill more often\n",
                      (unsigned long long)(book->missed - missed));
    if (rc == 0 && o->enforce) {
        rc = bill_enforce(book, prices, &server, o->book, wall_ns(), o->really, stdout, err);
    } else if (rc == 0) {
        struct bill_question q = {.by = o->by, .month = o->month, .user = o->user, .group = o->group};
        CLEANUP(bill) struct bill bill;
        bill_make(book, prices, &q, &bill);
        bill_print(&bill, prices, o->form, stdout);
    }
    client_free(client);
    return rc;
}

/* Locks the book: two processes that write it would overwrite each other's lowered limits. */
static int book_lock(const char *path, int *ret, struct berth_err *err)
{
    CLEANUP(str) struct str name = {0};
    str_addf(&name, "%s.lock", path);
    int fd = open(str_text(&name), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(err, errno, "cannot open %s: %s", str_text(&name), strerror(errno));
    *ret = fd;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(err, EBUSY, "%s: in use by another berth-bill; wait until it has ended", path);
    return 0;
}

static int run(const struct bill_options *o, struct berth_err *err)
{
    struct prices prices = {0};
    CLEANUP(book) struct usage_book book = {0};
    int rc = prices_read(o->prices, &prices, err);
    if (rc < 0)
        return rc;
    int lock = -1;
    if (!o->no_fetch || o->enforce) /* otherwise the book is only read */
        rc = book_lock(o->book, &lock, err);
    if (rc == 0)
        rc = book_load(o->book, &book, err);
    if (rc == 0)
        rc = run_with(o, &prices, &book, err);
    prices_done(&prices);
    if (lock >= 0)
        (void)close(lock);
    if (rc == 0 && fflush(stdout) != 0)
        rc = err_set(err, EIO, "cannot write the output");
    return rc;
}

int main(int argc, char **argv)
{
    struct bill_options options;
    struct berth_err err = {0};

    if (bill_options_read(argc, argv, &options, &err) < 0) {
        (void)fprintf(stderr, "berth-bill: %s\n", err.text);
        return EXIT_USAGE;
    }
    if (options.help)
        bill_options_help(stdout);
    else if (options.version)
        (void)printf("berth-bill %s\n", berth_version());
    if (options.help || options.version)
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    (void)umask(077);
    if (run(&options, &err) < 0) {
        (void)fprintf(stderr, "berth-bill: %s\n", err.text);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
