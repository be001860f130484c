/* cp.c - `berth cp`: copies files and folders from and to a pod, with the pod's own tar. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "cli/app/session.h"
#include "cli/app/tar.h"
#include "cli/lib/command.h"
#include "cli/lib/progress.h"
#include "net/client/client.h"
#include "wire/text/document.h"

enum { PIECE_BYTES = 64 * 1024 };

/* One side of the copy: "POD:PATH", or a local path, which starts with '.' or '/' or has no colon. */
struct copy_side {
    char *pod; /* NULL: a local path */
    const char *path;
};

static void copy_side_cleanup(struct copy_side *e)
{
    mem_free(e->pod);
}

static void copy_side_parse(const char *text, struct copy_side *ret)
{
    const char *colon = strchr(text, ':');

    *ret = (struct copy_side){.path = text};
    if (!colon || colon == text || *text == '.' || *text == '/')
        return;
    ret->pod = mem_strdup(text);
    ret->pod[colon - text] = '\0';
    ret->path = colon + 1;
}

/* A path as folder and name: "/a/b/" is "/a" and "b". The name is "" for "/" and for paths that end in dots. */
struct path_parts {
    char *folder, *name;
};

static void parts_cleanup(struct path_parts *p)
{
    mem_free(p->folder);
    mem_free(p->name);
}

static void parts_of(const char *path, struct path_parts *ret)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    size_t name = len;
    while (name > 0 && path[name - 1] != '/')
        name--;
    struct str folder = {0}, last = {0};
    str_add_bytes(&last, path + name, len - name);
    bool dots = last.len == 0 || strcmp(last.at, "/") == 0 || strcmp(last.at, ".") == 0 || strcmp(last.at, "..") == 0;
    if (dots) {
        str_clear(&last);
        str_add_bytes(&folder, path, len);
    } else {
        str_add_bytes(&folder, path, name);
    }
    if (folder.len == 0)
        str_add_char(&folder, '.');
    ret->folder = str_take(&folder);
    ret->name = str_take(&last);
}

static void skipped(void *ctx, const char *path, const char *why)
{
    struct progress *p = ctx;
    progress_end(p);
    cli_warn(p->cli, "skipped %s: %s", path, why);
}

static void moved(void *ctx, size_t done, size_t total)
{
    progress_update(ctx, done, total);
}

/* ---- from a pod ------------------------------------------------------------------------------------------------- */

struct download {
    const struct cli *cli;
    struct untar *untar;
    struct berth_err err;
    int rc;
};

static bool archive_take(void *ctx, const char *at, size_t len)
{
    struct download *t = ctx;
    t->rc = untar_feed(t->untar, at, len, &t->err);
    return t->rc == 0;
}

static bool words_pass(void *ctx, const char *at, size_t len)
{
    FILE *err = ((const struct download *)ctx)->cli->err;
    (void)fwrite(at, 1, len, err);
    return true;
}

/* Opens the folder to write to and returns the name of the copy: LOCAL itself, or the original name if LOCAL is a
 * folder. */
static int target_open(const struct cli *cli, const char *local, const char *name, struct path_parts *ret, int *ret_fd)
{
    struct stat st;

    if (stat(local, &st) == 0 && S_ISDIR(st.st_mode) && *name) {
        ret->folder = mem_strdup(local);
        ret->name = mem_strdup(name);
    } else {
        parts_of(local, ret);
    }
    if (!*ret->name)
        return cli_fail(cli, EXIT_USAGE, "'%s' has no file name; give the name of the copy", local);
    *ret_fd = open(ret->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret_fd < 0)
        return cli_fail(cli, EXIT_FAILED, "cannot write into %s: %s", ret->folder, strerror(errno));
    return EXIT_OK;
}

static int exec_words(struct api *a, const struct listed_pod *pod, const char *const *words, size_t len,
                      struct pod_session *ret)
{
    CLEANUP(json) json_t *list = words_json(a->cli, words, len);
    if (!list)
        return EXIT_USAGE;
    CLEANUP(json) json_t *body = json_pack("{s:O}", "command", list);
    return pod_session_open(a, pod, body, ret);
}

static int tar_failed(const struct cli *cli, int exit_code)
{
    if (exit_code == 127 || exit_code == 126)
        return cli_fail(cli, EXIT_FAILED, "cp needs the program tar in the pod");
    return cli_fail(cli, EXIT_FAILED, "tar in the pod exited with %d", exit_code);
}

static int copy_out(struct api *a, const struct listed_pod *pod, const char *path, const char *local)
{
    CLEANUP(parts) struct path_parts from = {0}, to = {0};
    struct progress progress;
    struct pod_session e;
    int exit_code = 0, fd = -1;

    parts_of(path, &from);
    int rc = target_open(a->cli, local, from.name, &to, &fd);
    const char *const words[] = {"tar", "-cf", "-", "-C", from.folder, "--", *from.name ? from.name : "."};
    if (rc == EXIT_OK)
        rc = exec_words(a, pod, words, sizeof words / sizeof words[0], &e);
    if (rc == EXIT_OK)
        rc = pod_session_write(a, &e, NULL, 0, true);
    if (rc != EXIT_OK && rc != EXIT_NOT_FOUND) {
        if (fd >= 0)
            (void)close(fd);
        return rc;
    }
    progress_start(&progress, a->cli, "Copying");
    const struct tar_callbacks callbacks = {.ctx = &progress, .skipped = skipped, .moved = moved};
    struct download t = {.cli = a->cli, .untar = untar_new(fd, *from.name ? from.name : NULL, to.name, &callbacks)};
    const struct pod_session_output ear = {.ctx = &t, .out = archive_take, .err = words_pass};
    rc = pod_session_read(a, &e, &ear, &exit_code);
    progress_end(&progress);
    if (t.rc < 0)
        rc = cli_fail(a->cli, EXIT_FAILED, "%s", t.err.text);
    else if (rc == EXIT_OK && exit_code != 0)
        rc = tar_failed(a->cli, exit_code);
    else if (rc == EXIT_OK && untar_end(t.untar, &t.err) < 0)
        rc = cli_fail(a->cli, EXIT_FAILED, "%s", t.err.text);
    untar_free(t.untar);
    (void)close(fd);
    return rc;
}

/* ---- to a pod --------------------------------------------------------------------------------------------------- */

/* One thread reads the output of the pod's tar while another thread sends the archive. */
struct upload {
    struct api input, output;
    struct pod_session pod_session;
    struct download words;
    pthread_t thread;
    int rc, exit_code;
    char *piece;
    size_t len;
    int fed;
};

static void *output_reader_main(void *ctx)
{
    struct upload *s = ctx;
    const struct pod_session_output ear = {.ctx = &s->words, .out = words_pass, .err = words_pass};
    s->rc = pod_session_read(&s->output, &s->pod_session, &ear, &s->exit_code);
    return NULL;
}

static bool piece_send(struct upload *s, bool eof)
{
    s->fed = pod_session_write(&s->input, &s->pod_session, s->piece, s->len, eof);
    s->len = 0;
    return s->fed == EXIT_OK;
}

static bool archive_send(void *ctx, const void *at, size_t len)
{
    struct upload *s = ctx;

    while (len > 0) {
        size_t n = PIECE_BYTES - s->len < len ? PIECE_BYTES - s->len : len;
        memcpy(s->piece + s->len, at, n);
        s->len += n;
        at = (const char *)at + n;
        len -= n;
        if (s->len == PIECE_BYTES && !piece_send(s, false))
            return false;
    }
    return true;
}

/* Determines the target: within PATH if PATH is a folder or ends in '/'; otherwise PATH is the name of the copy. */
static int target_of(struct api *a, const struct listed_pod *pod, const char *path, const char *local,
                     struct path_parts *ret)
{
    const char *const test[] = {"test", "-d", path, NULL};
    size_t len = strlen(path);
    bool folder = len > 0 && path[len - 1] == '/';
    int exit_code = 1;

    int rc = folder ? EXIT_OK : pod_session_run(a, pod, test, &exit_code);
    if (rc != EXIT_OK)
        return rc;
    if (!folder && exit_code != 0) {
        parts_of(path, ret);
    } else {
        struct path_parts from = {0};
        CLEANUP(mem) char *real = realpath(local, NULL);
        parts_of(real ? real : local, &from);
        ret->folder = mem_strdup(path);
        ret->name = take_ptr(&from.name);
        parts_cleanup(&from);
    }
    return *ret->name ? EXIT_OK : cli_fail(a->cli, EXIT_USAGE, "'%s' has no file name", path);
}

static int send_all(struct api *a, struct upload *s, const char *local, const char *name)
{
    struct progress progress;
    struct berth_err err = {0};

    progress_start(&progress, a->cli, "Copying");
    const struct tar_callbacks callbacks = {.ctx = &progress, .skipped = skipped, .moved = moved};
    int rc = tar_write(local, name, archive_send, s, &callbacks, &err);
    if (rc == 0 && !piece_send(s, true))
        rc = -ECANCELED;
    progress_end(&progress);
    if (rc == 0 || s->fed == EXIT_NOT_FOUND)
        return EXIT_OK; /* if tar has ended early, its error output says why */
    return rc == -ECANCELED ? s->fed : cli_fail(a->cli, EXIT_FAILED, "%s", err.text);
}

static int copy_in(struct api *a, const struct listed_pod *pod, const char *local, const char *path)
{
    CLEANUP(parts) struct path_parts to = {0};
    CLEANUP(mem) char *piece = mem_alloc(PIECE_BYTES);
    struct upload s = {.words = {.cli = a->cli}, .piece = piece};

    if (access(local, R_OK) != 0)
        return cli_fail(a->cli, EXIT_FAILED, "cannot read %s: %s", local, strerror(errno));
    int rc = target_of(a, pod, path, local, &to);
    const char *const words[] = {"tar", "-xmof", "-", "-C", to.folder};
    if (rc == EXIT_OK)
        rc = exec_words(a, pod, words, sizeof words / sizeof words[0], &s.pod_session);
    if (rc == EXIT_OK)
        rc = api_clone(a, &s.input);
    if (rc == EXIT_OK)
        rc = api_clone(a, &s.output);
    int failed = rc == EXIT_OK ? pthread_create(&s.thread, NULL, output_reader_main, &s) : 0;
    if (failed)
        rc = cli_fail(a->cli, EXIT_FAILED, "cannot start a thread: %s", strerror(failed));
    if (rc == EXIT_OK) {
        rc = send_all(a, &s, local, to.name);
        if (rc != EXIT_OK) { /* the copy in the pod is incomplete: end tar */
            CLEANUP(api_answer) struct api_answer answer = {0};
            struct api_error trouble;
            (void)api_try(&s.input, &(struct api_request){.method = "DELETE", .path = s.pod_session.path}, &answer,
                          &trouble);
        }
        (void)pthread_join(s.thread, NULL);
        if (rc == EXIT_OK)
            rc = s.rc;
        if (rc == EXIT_OK && s.exit_code != 0)
            rc = tar_failed(a->cli, s.exit_code);
    }
    client_free(s.input.client);
    client_free(s.output.client);
    return rc;
}

/* ---- the verb --------------------------------------------------------------------------------------------------- */

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    CLEANUP(api) struct api api = {0};
    CLEANUP(copy_side) struct copy_side from = {0}, to = {0};
    struct listed_pod pod;

    (void)values;
    copy_side_parse(operands->at[0], &from);
    copy_side_parse(operands->at[1], &to);
    if (!from.pod == !to.pod)
        return cli_fail(cli, EXIT_USAGE,
                        "expected one POD:PATH and one local path; write a local path that contains a colon as "
                        "./NAME");
    if (!*from.path || !*to.path)
        return cli_fail(cli, EXIT_USAGE, "missing path after '%s:'", from.pod ? from.pod : to.pod);
    int rc = api_open(&api, cli);
    if (rc == EXIT_OK)
        rc = pod_running(&api, from.pod ? from.pod : to.pod, false, &pod);
    if (rc != EXIT_OK)
        return rc;
    return from.pod ? copy_out(&api, &pod, from.path, to.path) : copy_in(&api, &pod, from.path, to.path);
}

const struct command cp_command = {
    .name = "cp",
    .operands = "FROM TO",
    .operands_min = 2,
    .operands_max = 2,
    .summary = "Copy files and folders from or to a pod.",
    .text = "One of FROM and TO is POD:PATH, the other a local path. Folders are copied recursively. "
            "If TO is a folder, the copy keeps its name; otherwise it is named TO. The pod must "
            "contain the program tar. Copies from a pod are written only below TO, whatever the pod "
            "sends; links that lead out of the copy are skipped, also through other links.",
    .examples = "  berth cp photos/0:/var/log/photos.log .\n"
                "  berth cp ./theme photos:/srv/themes/",
    .section = SECTION_WORK,
    .talks = true,
    .run = run,
};
