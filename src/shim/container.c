/* container.c - runs an instance in a container, by an OCI runtime (crun or runc) and a prepared bundle.
 *
 * `create` makes the container's first process. It becomes a child of the shim when the runtime exits, because the shim
 * is a subreaper. The runtime logs errors to DIR/runtime.log.
 *
 * The agent manages the cgroups and their limits. crun is told not to touch cgroups and is itself started inside them,
 * which works with every mix of cgroup versions; runc insists on entering and removing the cgroupsPath of the bundle
 * itself.
 */
#include "shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"

#define RUNTIME_LOG "runtime.log"

static const char *const runtime_env[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", NULL};

struct arg_list {
    const char **at;
    size_t len, cap;
};

static void arg_list_cleanup(struct arg_list *w)
{
    vec_done(w);
}

enum { NAME_MAX_LEN = 32 };

static bool is_crun(const struct launch *l)
{
    const char *slash = strrchr(l->runtime, '/');

    return strncmp(slash ? slash + 1 : l->runtime, "crun", 4) == 0;
}

/* Appends the runtime and its global options. */
static void arg_list_begin(struct arg_list *w, const struct launch *l)
{
    vec_push(w, l->runtime);
    if (is_crun(l))
        vec_push(w, "--cgroup-manager=disabled");
}

static void arg_list_add(struct arg_list *w, const char *const *more)
{
    for (; *more; more++)
        vec_push(w, *more);
    vec_push(w, NULL);
}

static const char *container_name(const struct launch *l, char ret[static NAME_MAX_LEN])
{
    (void)snprintf(ret, NAME_MAX_LEN, "berth-%" PRIu64, l->id);
    return ret;
}

/* Reads the last error message of the runtime's log; of a JSON line only its "msg". */
static void runtime_error_read(const struct shim *s, const char *verb, struct berth_err *err)
{
    CLEANUP(mem) char *text = NULL;
    char *line, *message, *end;

    (void)err_set(err, EIO, "'%s %s' failed", s->spec.launch.runtime, verb);
    if (file_read(s->dir, RUNTIME_LOG, &text, NULL))
        return;
    for (size_t len = strlen(text); len > 0 && text[len - 1] == '\n';)
        text[--len] = 0;
    line = strrchr(text, '\n');
    line = line ? line + 1 : text;
    message = strstr(line, "\"msg\":\"");
    if (message) {
        line = end = message + 7;
        for (const char *at = line; *at && *at != '"'; at++) {
            if (*at == '\\' && at[1])
                at++;
            *end++ = *at;
        }
        *end = 0;
    }
    if (*line)
        (void)err_set(err, EIO, "%s %s: %s", s->spec.launch.runtime, verb, line);
}

/* ---- running the runtime ---- */

static void runtime_become(const struct shim *s, const char *const *argv, bool with_pipes)
{
    struct berth_err err = {0};
    int failed = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (prctl(PR_SET_PDEATHSIG, SIGKILL))
        _exit(126);
    if (with_pipes && is_crun(&s->spec.launch) && cgroups_enter(&s->spec.launch, &err))
        _exit(126);
    if (with_pipes && descriptors_arrange(s, &failed, &err))
        _exit(126);
    oom_score_reset();
    signals_reset();
    (void)program_exec(argv, runtime_env, &err);
    _exit(127);
}

/* Waits for one process; 0: it exited with 0. It is killed after `limit_ns`; 0: no limit. */
static int runtime_wait(pid_t pid, int64_t limit_ns)
{
    int64_t end = boottime_ns() + limit_ns;
    int status = -1;

    for (;;) {
        pid_t got = waitpid(pid, &status, limit_ns > 0 ? WNOHANG : 0);

        if (got == pid)
            return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got == 0 && boottime_ns() > end) {
            (void)kill(pid, SIGKILL);
            limit_ns = 0;
        }
        if (got == 0)
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

static int runtime_run(const struct shim *s, const char *const *argv, bool with_pipes, int64_t limit_ns)
{
    pid_t pid = fork();

    if (pid < 0)
        return -errno;
    if (pid == 0)
        runtime_become(s, argv, with_pipes);
    return runtime_wait(pid, limit_ns);
}

static int runtime_verb(const struct shim *s, const char *const *arg_list, bool with_pipes, struct berth_err *err)
{
    CLEANUP(arg_list) struct arg_list argv = {0};
    int rc;

    arg_list_begin(&argv, &s->spec.launch);
    arg_list_add(&argv, arg_list);
    rc = runtime_run(s, argv.at, with_pipes, 0);
    if (rc)
        runtime_error_read(s, arg_list[4], err);
    return rc ? -EIO : 0;
}

static int pid_read(struct shim *s)
{
    CLEANUP(mem) char *text = NULL;
    int rc = file_read(s->dir, "pid", &text, NULL);

    if (rc)
        return rc;
    s->pid = (pid_t)strtol(text, NULL, 10);
    return s->pid > 1 ? 0 : -EIO;
}

int container_start(struct shim *s, struct berth_err *err)
{
    const struct launch *l = &s->spec.launch;
    char dir[32], log[64], pid[64], fds[16], name[NAME_MAX_LEN];
    const char *create[] = {"--log",      log, "--log-format",   "json", "create", "--bundle", l->bundle,
                            "--pid-file", pid, "--preserve-fds", fds,    name,     NULL};
    const char *start[] = {"--log", log, "--log-format", "json", "start", name, NULL};
    int rc;

    /* The instance directory is passed by the shim's descriptor, which stays open while the runtime runs. */
    (void)snprintf(dir, sizeof dir, "/proc/%d/fd/%d", (int)getpid(), s->dir);
    (void)snprintf(log, sizeof log, "%s/" RUNTIME_LOG, dir);
    (void)snprintf(pid, sizeof pid, "%s/pid", dir);
    (void)snprintf(fds, sizeof fds, "%zu", l->sockets_len + 1);
    container_name(l, name);
    rc = runtime_verb(s, create, true, err);
    if (rc)
        return rc;
    rc = pid_read(s);
    if (rc)
        (void)err_set(err, -rc, "the runtime did not report the process of the container");
    else
        rc = runtime_verb(s, start, false, err);
    if (rc) {
        container_end(s);
        (void)tree_kill(s);
        s->pid = 0;
    }
    return rc;
}

void container_end(struct shim *s)
{
    CLEANUP(arg_list) struct arg_list argv = {0};
    char name[NAME_MAX_LEN];

    arg_list_begin(&argv, &s->spec.launch);
    arg_list_add(&argv, (const char *const[]){"delete", "--force", container_name(&s->spec.launch, name), NULL});
    (void)runtime_run(s, argv.at, false, INT64_C(20) * 1000000000); /* bundle_end of the agent tries again */
}

int container_exec(const struct launch *l, int process, bool terminal, struct berth_err *err)
{
    CLEANUP(arg_list) struct arg_list arg_list = {0};
    char name[NAME_MAX_LEN], path[32];
    int rc = is_crun(l) ? cgroups_enter(l, err) : 0;

    if (rc)
        return rc;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", process);
    arg_list_begin(&arg_list, l);
    vec_push(&arg_list, "exec");
    vec_push(&arg_list, "--process");
    vec_push(&arg_list, path);
    if (terminal)
        vec_push(&arg_list, "--tty");
    arg_list_add(&arg_list, (const char *const[]){container_name(l, name), NULL});
    return program_exec(arg_list.at, runtime_env, err);
}
