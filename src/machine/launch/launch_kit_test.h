/* launch_kit_test.h - a state directory with instances, and queries of their state; for tests with real processes. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "machine/launch/launch.h"
#include "machine/launch/state_file.h"

struct kit {
    char root[64];
    char shim[4096];
    struct state_dir *state_dir;
    struct launch l; /* for the next instance */
    const char *argv[8], *env[8];
    uint64_t next;
    bool can; /* the requirements of a test are met */
};

static inline void kit_remove(const char *path)
{
    pid_t pid = fork();

    if (pid == 0) {
        execlp("rm", "rm", "-rf", "--one-file-system", path, NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static inline int kit_setup(void **state)
{
    struct kit *k = mem_zalloc(sizeof *k);
    const char *build = getenv("BERTH_BUILD");
    struct berth_err err;

    (void)snprintf(k->shim, sizeof k->shim, "%s/src/shim/berth-shim", build ? build : "build/gcc");
    (void)snprintf(k->root, sizeof k->root, "/tmp/berth-launch-XXXXXX");
    assert_non_null(mkdtemp(k->root));
    assert_int_equal(chmod(k->root, 0755), 0);
    if (state_dir_open(k->root, &k->state_dir, &err))
        fail_msg("%s", err.text);
    k->next = 1;
    *state = k;
    return 0;
}

static inline int kit_teardown(void **state)
{
    struct kit *k = *state;

    state_dir_free(k->state_dir);
    kit_remove(k->root);
    mem_free(k);
    return 0;
}

/* Prepares an instance that runs a shell script as the user of this test. */
static inline struct launch *kit_script(struct kit *k, const char *script)
{
    k->argv[0] = "/bin/sh";
    k->argv[1] = "-c";
    k->argv[2] = script;
    k->argv[3] = NULL;
    k->env[0] = "PATH=/usr/bin:/bin";
    k->env[1] = NULL;
    k->l = (struct launch){
        .id = k->next++, .shim = k->shim, .argv = k->argv, .env = k->env, .cwd = "/", .uid = getuid(), .gid = getgid()};
    return &k->l;
}

static inline struct launch_result kit_start(struct kit *k, const struct launch *l)
{
    struct launch_result run = {.pidfd = -1};
    struct berth_err err;

    if (instance_dir_create(k->state_dir, l->id, "{}", &err) || launch_start(k->state_dir, l, &run, &err))
        fail_msg("%s", err.text);
    return run;
}

/* Waits until the shim has exited; fails after a minute. */
static inline void kit_wait(struct launch_result *run)
{
    struct pollfd gone = {.fd = run->pidfd, .events = POLLIN};

    assert_int_equal(poll(&gone, 1, 60 * 1000), 1);
    close(run->pidfd);
    run->pidfd = -1;
}

static inline int kit_exit(struct kit *k, uint64_t id, char text[static LAUNCH_TEXT_MAX])
{
    int code = -99;

    assert_int_equal(launch_exit(k->state_dir, id, &code, text), 0);
    return code;
}

/* Starts it, waits for its end, and returns its exit code. */
static inline int kit_run(struct kit *k, const struct launch *l)
{
    struct launch_result run = kit_start(k, l);
    char text[LAUNCH_TEXT_MAX];
    int code;

    kit_wait(&run);
    code = kit_exit(k, l->id, text);
    if (*text)
        print_message("%s\n", text);
    return code;
}

/* Returns the content of a file in the state directory, or "" if it does not exist; the caller frees it. */
static inline char *kit_file(struct kit *k, const char *format, uint64_t id)
{
    char path[128];
    char *text;
    int dir = open(k->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)snprintf(path, sizeof path, format, id);
    if (file_read(dir, path, &text, NULL))
        text = mem_strdup("");
    close(dir);
    return text;
}

static inline char *kit_log(struct kit *k, uint64_t id)
{
    return kit_file(k, "logs/%" PRIu64 "/log", id);
}

static inline void kit_nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

/* Waits until the log of the instance contains this text; fails after a minute. */
static inline void kit_expect(struct kit *k, uint64_t id, const char *text)
{
    for (int i = 0; i < 12000; i++) {
        char *log = kit_log(k, id);
        bool found = strstr(log, text);

        mem_free(log);
        if (found)
            return;
        kit_nap();
    }
    fail_msg("no '%s' in the log", text);
}

static inline bool kit_lives(pid_t pid)
{
    return kill(pid, 0) == 0;
}
