/* oci_tool_test.c - system programs, and processes that they leave behind. */
#include "machine/image/oci_tool.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "machine/launch/folder_test.h"
#include "machine/launch/state_file.h"

/* Runs a shell that exits at once and leaves a child in its process group, which writes "here" when it is told to.
 * Returns the child's pid. */
static pid_t leave(const struct folder *f, const char *const *procs_paths)
{
    static const char script[] =
        "(until [ -e go ]; do sleep 0.01; done; touch here; exec sleep 1000) >/dev/null 2>&1 & echo $!";
    static const char *const argv[] = {"sh", "-c", script, NULL};
    CLEANUP(close_fd) int dir = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct tool tool = {.argv = argv,
                              .dir = dir,
                              .timeout_ns = INT64_C(60000000000),
                              .procs_paths = procs_paths,
                              .what = "cannot leave"};
    CLEANUP(str) struct str out = {0};
    struct berth_err err = {0};
    assert_int_equal(tool_run(&tool, &out, &err), 0);
    folder_put(f, "go", "");
    return (pid_t)strtol(str_text(&out), NULL, 10);
}

/* Tells whether the process is dead, reaped or not. */
static bool is_dead(pid_t pid)
{
    char path[64], line[256] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    bool dead = !file || !fgets(line, sizeof line, file) || strstr(line, ") Z");
    if (file)
        (void)fclose(file);
    return dead;
}

/* Waits until the process writes "here" or dies; true: it dies. */
static bool dies(const struct folder *f, pid_t pid)
{
    for (int i = 0; i < 6000; i++) {
        if (is_dead(pid))
            return true;
        if (access(folder_at(f, "here"), F_OK) == 0)
            return false;
        (void)usleep(10 * 1000);
    }
    fail_msg("nothing is heard of what was left behind");
    return false;
}

static void remaining_children_are_killed(void **state)
{
    CLEANUP(folder) struct folder f = folder_new();
    (void)state;
    assert_true(dies(&f, leave(&f, NULL)));
}

static void children_in_cgroup_are_left_to_caller(void **state)
{
    CLEANUP(folder) struct folder f = folder_new();
    (void)state;
    folder_put(&f, "group", "");
    const char *const procs_paths[] = {folder_at(&f, "group"), NULL};
    pid_t pid = leave(&f, procs_paths);
    assert_string_equal(folder_get(&f, "group"), "0"); /* it has entered the cgroup */
    assert_false(dies(&f, pid));
    assert_int_equal(kill(pid, SIGKILL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(remaining_children_are_killed),
        cmocka_unit_test(children_in_cgroup_are_left_to_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
