/* run.c - a separate berthd: finds it, starts it, sends requests, stops it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/daemon/daemon.h"
#include "net/client/client.h"
#include "wire/text/document.h"

enum { START_S_MAX = 120, STOP_S_MAX = 15, SYNC_BYTES = 4096 };

static void close_cleanup(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

static void fclose_cleanup(FILE **f)
{
    if (*f)
        (void)fclose(*f);
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

static char *try_path(const char *folder, const char *rest)
{
    struct str path = {0};

    str_addf(&path, "%s/%s", folder, rest);
    if (access(path.at, X_OK) == 0)
        return str_take(&path);
    str_done(&path);
    return NULL;
}

static char *search_path(const char *name)
{
    const char *at = getenv("PATH");

    while (at && *at) {
        size_t len = strcspn(at, ":");
        char folder[PATH_MAX];
        (void)snprintf(folder, sizeof folder, "%.*s", (int)len, at);
        char *found = len ? try_path(folder, name) : NULL;
        if (found)
            return found;
        at += len + (at[len] == ':');
    }
    return NULL;
}

char *bench_run_find(const char *told, const char *name, const char *built, const char *option, struct berth_err *err)
{
    char self[PATH_MAX], beside[3][64];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    char *found = NULL;

    if (told) {
        if (access(told, X_OK) == 0)
            return mem_strdup(told);
        (void)err_set(err, errno, "%s cannot be run: %s", told, strerror(errno));
        return NULL;
    }
    (void)snprintf(beside[0], sizeof beside[0], "%s", name);
    (void)snprintf(beside[1], sizeof beside[1], "../sbin/%s", name);
    (void)snprintf(beside[2], sizeof beside[2], "../%s/%s", built, name);
    if (len > 0) {
        self[len] = '\0';
        const char *folder = dirname(self);
        for (size_t i = 0; !found && i < sizeof beside / sizeof *beside; i++)
            found = try_path(folder, beside[i]);
    }
    if (!found)
        found = search_path(name);
    if (!found)
        (void)err_set(err, ENOENT, "no %s next to this program or on PATH; set it with --%s", name, option);
    return found;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void bench_folder_remove(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int bench_folder_syncs(const char *path, double *ret_per_s, struct berth_err *err)
{
    static const char block[SYNC_BYTES] = {1};
    CLEANUP(str) struct str name = {0};

    str_addf(&name, "%s/syncs", path);
    CLEANUP(close) int fd = open(name.at, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(err, errno, "cannot write %s: %s", name.at, strerror(errno));
    int64_t begin_ns = cli_clock_ns(), took_ns = 0;
    size_t n = 0;
    for (; took_ns < SECOND_NS; n++, took_ns = cli_clock_ns() - begin_ns)
        if (write(fd, block, sizeof block) != (ssize_t)sizeof block || fdatasync(fd) < 0)
            return err_set(err, errno, "cannot write %s: %s", name.at, strerror(errno));
    (void)unlink(name.at);
    *ret_per_s = (double)n / ((double)took_ns / (double)SECOND_NS);
    return 0;
}

/* ---- starting --------------------------------------------------------------------------------------------------- */

/* In the child process: executes berthd, with its standard output in `out` and its log in a file. */
static _Noreturn void exec_berthd(const struct bench_daemon *b, const char *data, const char *token_file,
                                  const char *log, int out)
{
    int log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    const char *more = b->agents ? "--agents" : "--lease", *value = b->agents ? "127.0.0.1:0" : "86400";

    /* The daemon dies with the benchmark. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (log_fd >= 0 && dup2(out, STDOUT_FILENO) >= 0 && dup2(log_fd, STDERR_FILENO) >= 0)
        (void)execl(b->program, "berthd", "--data", data, "--listen", "127.0.0.1:0", "--init",
                    "--max-connections-per-address", "1000000", "--token-file", token_file, more, value, (char *)NULL);
    _exit(127);
}

static int token_read(const char *path, char *buf, size_t size, struct berth_err *err)
{
    CLEANUP(fclose) FILE *f = fopen(path, "re");

    if (!f || !fgets(buf, (int)size, f))
        return err_set(err, EIO, "berthd has written no token to %s", path);
    buf[strcspn(buf, "\n")] = '\0';
    return 0;
}

/* Reads the last line of the log, which has the reason of a failed start. */
static int start_failed(const char *log, struct berth_err *err)
{
    CLEANUP(fclose) FILE *f = fopen(log, "re");
    char line[400] = "", last[400] = "no output";

    while (f && fgets(line, sizeof line, f))
        memcpy(last, line, sizeof last);
    last[strcspn(last, "\n")] = '\0';
    return err_set(err, EIO, "berthd does not start: %s", last);
}

static int ready_read(struct bench_run *r, int out, const char *log, int64_t began_ns, struct berth_err *err)
{
    CLEANUP(fclose) FILE *f = fdopen(out, "r");
    char line[128];
    unsigned port;

    if (!f || !fgets(line, sizeof line, f) || sscanf(line, "ready http://127.0.0.1:%u", &port) != 1)
        return start_failed(log, err);
    r->ready_s = (double)(cli_clock_ns() - began_ns) / (double)SECOND_NS;
    r->ready_cpu_s = bench_run_cpu_s(r);
    (void)snprintf(r->url, sizeof r->url, "http://127.0.0.1:%u", port);
    r->server.address.sin_family = AF_INET;
    r->server.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    r->server.address.sin_port = htons((uint16_t)port);
    return 0;
}

static int run_spawn(const struct bench_daemon *b, struct bench_run *r, const char *data, const char *token_file,
                     const char *log, struct berth_err *err)
{
    int out[2];

    if (pipe2(out, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot create a pipe: %s", strerror(errno));
    int64_t began_ns = cli_clock_ns();
    r->pid = fork();
    if (r->pid == 0)
        exec_berthd(b, data, token_file, log, out[1]);
    (void)close(out[1]);
    if (r->pid < 0) {
        (void)close(out[0]);
        return err_set(err, errno, "cannot start berthd: %s", strerror(errno));
    }
    return ready_read(r, out[0], log, began_ns, err);
}

/* Removes the placement budget: synthetic nodes never start instances, and all work belongs to one user. */
static int budget_lift(const struct bench_run *r, struct berth_err *err)
{
    json_t *answer = bench_run_ask(r, "PATCH", "/v1/system/settings", "{\"placement_budget\":0}", 200, err);
    if (!answer)
        return -err->code;
    json_decref(answer);
    return 0;
}

int bench_run_start(const struct bench_daemon *b, const char *name, struct bench_run *ret, struct berth_err *err)
{
    CLEANUP(str) struct str data = {0}, token_file = {0}, log = {0};

    str_addf(&data, "%s/%s", b->folder, name);
    str_addf(&token_file, "%s/%s.token", b->folder, name);
    str_addf(&log, "%s/%s.log", b->folder, name);
    *ret = (struct bench_run){0};
    int rc = run_spawn(b, ret, data.at, token_file.at, log.at, err);
    if (rc == 0)
        rc = token_read(token_file.at, ret->token, sizeof ret->token, err);
    if (rc == 0) {
        const struct client_config config = {
            .url = ret->url, .token = ret->token, .timeout_ns = START_S_MAX * SECOND_NS, .agent = "berth-bench"};
        rc = client_new(&config, &ret->client, err);
    }
    if (rc == 0)
        rc = budget_lift(ret, err);
    if (rc < 0) {
        bench_run_stop(ret);
        return rc;
    }
    ret->server.token = ret->token;
    return 0;
}

void bench_run_stop(struct bench_run *r)
{
    client_free(r->client);
    if (r->pid > 0) {
        int64_t end_ns = cli_clock_ns() + STOP_S_MAX * SECOND_NS;
        (void)kill(r->pid, SIGTERM);
        while (waitpid(r->pid, NULL, WNOHANG) == 0) {
            if (cli_clock_ns() > end_ns)
                (void)kill(r->pid, SIGKILL);
            (void)usleep(1000);
        }
    }
    *r = (struct bench_run){0};
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

uint64_t bench_run_rss_bytes(const struct bench_run *r)
{
    char path[64], line[128];
    unsigned long long kib = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)r->pid);
    CLEANUP(fclose) FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmRSS: %llu kB", &kib) == 1)
            break;
    return kib * 1024;
}

double bench_run_cpu_s(const struct bench_run *r)
{
    clockid_t clock;
    struct timespec t;

    if (clock_getcpuclockid(r->pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return 0;
    return (double)t.tv_sec + (double)t.tv_nsec / (double)SECOND_NS;
}

json_t *bench_run_ask(const struct bench_run *r, const char *method, const char *path, const char *body, int status,
                      struct berth_err *err)
{
    const struct client_request request = {
        .method = method, .path = path, .body = body, .body_len = body ? strlen(body) : 0};
    struct client_answer answer = {0};
    json_t *ret = NULL;

    if (client_do(r->client, &request, &answer, err) < 0)
        return NULL;
    if (answer.status != status)
        (void)err_set(err, EPROTO, "%s %s is answered with %d, not %d: %.200s", method, path, answer.status, status,
                      str_text(&answer.body));
    else if (!(ret = json_loadb(str_text(&answer.body), answer.body.len, 0, NULL)))
        (void)err_set(err, EPROTO, "the response to %s %s is not valid JSON", method, path);
    client_answer_done(&answer);
    return ret;
}

json_t *bench_run_list(const struct bench_run *r, const char *kind, struct berth_err *err)
{
    CLEANUP(str) struct str path = {0};
    CLEANUP(json) json_t *items = json_array();

    str_addf(&path, "/v1/%s?limit=10000", kind);
    for (bool more = true; more;) {
        CLEANUP(json) json_t *list = bench_run_ask(r, "GET", path.at, NULL, 200, err);
        if (!list)
            return NULL;
        const char *after = json_string_value(json_object_get(list, "continue"));
        (void)json_array_extend(items, json_object_get(list, "items"));
        more = after;
        str_clear(&path);
        if (more)
            str_addf(&path, "/v1/%s?limit=10000&after=%s", kind, after);
    }
    return take_ptr(&items);
}

int bench_run_count(const struct bench_run *r, const char *kind, size_t *ret, struct berth_err *err)
{
    CLEANUP(json) json_t *items = bench_run_list(r, kind, err);

    if (!items)
        return -err->code;
    *ret = json_array_size(items);
    return 0;
}

int bench_run_revision(const struct bench_run *r, uint64_t *ret, struct berth_err *err)
{
    json_t *list = bench_run_ask(r, "GET", "/v1/jobs?limit=1", NULL, 200, err);

    if (!list)
        return -err->code;
    *ret = (uint64_t)json_integer_value(json_object_get(list, "revision"));
    json_decref(list);
    return 0;
}
