/* run.c - a separate berth-agent: creates its node, starts it, reads its kernel statistics, ends it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/agent/agent.h"

#define CGROUPS "/sys/fs/cgroup"
enum { WORDS_MAX = 24, CLEAR_ROUNDS = 200, FOLDERS_OPEN = 16 };

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

/* ---- starting --------------------------------------------------------------------------------------------------- */

/* Starts a program with its standard output in `out`, or, if that is -1, in the log file. */
static pid_t spawn(const char *program, const char *const *words, int out, const char *log)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    CLEANUP(close) int log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    /* The agent dies with the benchmark. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (log_fd >= 0 && dup2(out < 0 ? log_fd : out, STDOUT_FILENO) >= 0 && dup2(log_fd, STDERR_FILENO) >= 0)
        (void)execv(program, (char *const *)words);
    _exit(127);
}

/* Takes the reason from the log. */
static int agent_failed(const char *what, const char *log, struct berth_err *err)
{
    CLEANUP(fclose) FILE *f = fopen(log, "re");
    char line[400], last[400] = "no output";

    while (f && fgets(line, sizeof line, f))
        memcpy(last, line, sizeof last);
    last[strcspn(last, "\n")] = '\0';
    return err_set(err, EIO, "berth-agent %s: %.300s", what, last);
}

/* Runs the join command that the daemon printed, with the local program and folder. */
static int join(const struct bench_agent *b, const struct bench_node *n, const char *log, struct berth_err *err)
{
    const char *words[WORDS_MAX + 3];
    char *rest = NULL;
    size_t len = 0;
    int status = 0;
    json_t *invitation = bench_run_ask(&n->run, "POST", "/v1/nodes/bench/invite", "{}", 201, err);

    if (!invitation)
        return -err->code;
    const char *command = strstr(json_string_value(json_object_get(invitation, "command")), "berth-agent join ");
    CLEANUP(mem) char *line = mem_strdup(command ? command : "");
    char *file = strstr(line, " --token-file -");
    if (file)
        *file = '\0';
    (void)setenv("BERTH_JOIN_TOKEN", json_string_value(json_object_get(invitation, "token")), 1);
    json_decref(invitation);
    for (char *word = strtok_r(line, " ", &rest); word && len < WORDS_MAX; word = strtok_r(NULL, " ", &rest))
        words[len++] = word;
    words[len++] = "--state";
    words[len++] = n->state.at;
    words[len] = NULL;
    pid_t pid = spawn(b->program, words, -1, log);
    (void)unsetenv("BERTH_JOIN_TOKEN");
    if (pid < 0)
        return err_set(err, errno, "cannot start berth-agent: %s", strerror(errno));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : agent_failed("does not join", log, err);
}

static int agent_start(const struct bench_agent *b, struct bench_node *n, const char *log, struct berth_err *err)
{
    const char *const words[] = {"berth-agent", "--state", n->state.at, "--cgroup", b->group, NULL};
    int out[2];
    char line[128];

    if (pipe2(out, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot create a pipe: %s", strerror(errno));
    n->pid = spawn(b->program, words, out[1], log);
    (void)close(out[1]);
    CLEANUP(fclose) FILE *f = fdopen(out[0], "r");
    if (n->pid < 0)
        return err_set(err, errno, "cannot start berth-agent: %s", strerror(errno));
    if (!f || !fgets(line, sizeof line, f) || strncmp(line, "ready ", 6) != 0)
        return agent_failed("does not start", log, err);
    return 0;
}

int bench_node_start(const struct bench_agent *b, const char *name, struct bench_node *ret, struct berth_err *err)
{
    CLEANUP(str) struct str log = {0};

    *ret = (struct bench_node){0};
    str_addf(&ret->state, "%s/%s-agent", b->daemon.folder, name);
    str_addf(&log, "%s/%s-agent.log", b->daemon.folder, name);
    int rc = bench_run_start(&b->daemon, name, &ret->run, err);
    if (rc == 0)
        rc = join(b, ret, log.at, err);
    if (rc == 0)
        rc = agent_start(b, ret, log.at, err);
    if (rc < 0)
        bench_node_stop(ret);
    return rc;
}

void bench_node_stop(struct bench_node *n)
{
    if (n->pid > 0) {
        (void)kill(n->pid, SIGKILL);
        while (waitpid(n->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    bench_run_stop(&n->run);
    str_done(&n->state);
    *n = (struct bench_node){0};
}

/* ---- kernel statistics ------------------------------------------------------------------------------------------ */

/* CPU time of children that were waited for. The kernel counts in ticks of 10 ms, which are accurate only in sum. */
static double children_cpu_s(pid_t pid)
{
    char path[64], text[1024];
    long user = 0, system = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    CLEANUP(fclose) FILE *f = fopen(path, "re");
    const char *at = f && fgets(text, sizeof text, f) ? strrchr(text, ')') : NULL;
    if (!at || sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %ld %ld", &user, &system) != 2)
        return 0;
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

double bench_node_cpu_s(const struct bench_node *n)
{
    return bench_run_cpu_s(&(struct bench_run){.pid = n->pid}) + children_cpu_s(n->pid);
}

struct bench_memory bench_node_memory(const struct bench_node *n)
{
    struct bench_memory m = {0};
    char path[64], line[256], word[64];
    double kib;

    (void)snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)n->pid);
    CLEANUP(fclose) FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%63[^:]: %lf kB", word, &kib) != 2)
            continue;
        if (strcmp(word, "Rss") == 0)
            m.rss_bytes = kib * 1024;
        else if (strcmp(word, "Pss") == 0)
            m.pss_bytes = kib * 1024;
        else if (strncmp(word, "Private_", 8) == 0)
            m.private_bytes += kib * 1024;
    }
    return m;
}

/* ---- clearing up ------------------------------------------------------------------------------------------------ */

static int group_end(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    char procs[PATH_MAX + 16], line[32];

    (void)st;
    (void)ftw;
    if (type != FTW_DP)
        return 0;
    (void)snprintf(procs, sizeof procs, "%s/cgroup.procs", path);
    CLEANUP(fclose) FILE *f = fopen(procs, "re");
    while (f && fgets(line, sizeof line, f)) {
        int pid = atoi(line);
        if (pid > 1)
            (void)kill(pid, SIGKILL);
    }
    (void)rmdir(path); /* succeeds once all processes in it have ended */
    return 0;
}

/* Returns false if nothing of that name is left in the hierarchy. */
static bool group_clear_one(const char *hierarchy, const char *group)
{
    CLEANUP(str) struct str path = {0};

    str_addf(&path, "%s/%s", hierarchy, group);
    if (access(path.at, F_OK) < 0)
        return false;
    (void)nftw(path.at, group_end, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
    return access(path.at, F_OK) == 0;
}

void bench_group_clear(const char *group)
{
    bool left = true;

    for (int i = 0; left && i < CLEAR_ROUNDS; i++) {
        DIR *hierarchies = opendir(CGROUPS);
        const struct dirent *e;
        left = group_clear_one(CGROUPS, group);
        while (hierarchies && (e = readdir(hierarchies))) {
            char path[PATH_MAX];
            (void)snprintf(path, sizeof path, CGROUPS "/%s", e->d_name);
            if (e->d_name[0] != '.' && group_clear_one(path, group))
                left = true;
        }
        if (hierarchies)
            (void)closedir(hierarchies);
        if (left)
            (void)usleep(20 * 1000);
    }
}
