/* syscalls_test.c - denied system calls, tested on the real kernel by a process with the filter. */
#include "machine/launch/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Returns the exit status of a child with the filter; 99: the filter could not be installed. */
static int narrowed_by(int (*narrow)(struct berth_err *), int (*ask)(void))
{
    struct berth_err err;
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && narrow(&err) == 0 ? ask() : 99);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int narrowed(int (*ask)(void))
{
    return narrowed_by(syscalls_narrow, ask);
}

/* Calls with invalid arguments: without the filter the kernel would return other errors. */
static int ask_each(const struct syscall_rule *rules, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const struct syscall_rule *r = &rules[i];
        long args[6] = {-1, -1, -1, -1, -1, -1};

        if (r->test != CALL_ANY)
            args[r->argument] = (long)(r->test == CALL_CLEAR ? ~r->value : r->value);
        errno = 0;
        if (syscall(r->number, args[0], args[1], args[2], args[3], args[4], args[5]) != -1 || errno != r->code) {
            (void)fprintf(stderr, "%s with %#x: %s\n", r->name, r->value, strerror(errno));
            return 1;
        }
    }
    return 0;
}

static int ask_refused(void)
{
    return ask_each(syscall_rules, syscall_rules_len);
}

static int ask_network_refused(void)
{
    return ask_each(syscall_network_rules, syscall_network_rules_len) || ask_refused();
}

static void listed_syscalls_are_denied(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skip: without root the kernel refuses most of them by itself\n");
        skip();
    }
    assert_int_equal(narrowed(ask_refused), 0);
    assert_int_equal(narrowed_by(syscalls_narrow_network, ask_network_refused), 0);
}

static void *nothing(void *ctx)
{
    return ctx;
}

static int ask_usual(void)
{
    pthread_t thread;
    void *ended = NULL;
    int fd = socket(AF_INET, SOCK_STREAM, 0), status;
    bool good = fd >= 0 && close(fd) == 0 && unshare(CLONE_FILES) == 0 && getppid() > 0 &&
                pthread_create(&thread, NULL, nothing, &fd) == 0 && pthread_join(thread, &ended) == 0 && ended == &fd;
    pid_t pid = good ? fork() : -1;

    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", "echo 1 | cat >/dev/null && [ \"$(echo 2)\" = 2 ]", (char *)NULL);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1;
}

/* Connections, threads (used for name lookups), reading files, named memory. */
static int ask_network_usual(void)
{
    pthread_t thread;
    void *ended = NULL;
    char byte;
    int sock = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    int memory = memfd_create("x", MFD_CLOEXEC);
    bool good = sock >= 0 && file >= 0 && read(file, &byte, 1) == 1 && memory >= 0 && write(memory, "x", 1) == 1 &&
                ftruncate(memory, 0) == 0 && pthread_create(&thread, NULL, nothing, &sock) == 0 &&
                pthread_join(thread, &ended) == 0 && ended == &sock;

    return good && open("/dev/null", O_WRONLY | O_CLOEXEC) < 0 && fork() < 0 ? 0 : 1;
}

static void ordinary_syscalls_are_allowed(void **state)
{
    (void)state;
    assert_int_equal(narrowed(ask_usual), 0);
    assert_int_equal(narrowed_by(syscalls_narrow_network, ask_network_usual), 0);
}

/* The filter stays in force after exec and cannot be removed. */
static int ask_after_exec(void)
{
    (void)execl("/bin/sh", "sh", "-c", "grep -q '^Seccomp:.*2' /proc/self/status && ! unshare -U true 2>/dev/null",
                (char *)NULL);
    return 127;
}

static void filter_survives_exec(void **state)
{
    (void)state;
    assert_int_equal(narrowed(ask_after_exec), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listed_syscalls_are_denied),
        cmocka_unit_test(ordinary_syscalls_are_allowed),
        cmocka_unit_test(filter_survives_exec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
