/* port_guard_test.c - real processes in real cgroups bind ports reserved for others, for themselves, and unreserved
 * ones.
 */
#include "machine/net/port_guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "machine/cgroup/cgroup.h"
#include "machine/launch/state_file.h"

enum { JOB = 1, APP = 2, BLOCK = 10016, BLOCK_PORTS = 16 };
#define APP_OWNER UINT64_C(0xfedcba9876543210)
#define JOB_OWNER UINT64_C(0x1032547698badcfe)

struct kit {
    struct cgroups *groups;
    struct port_guard *guard;
    char name[32], job[256], app[256];
};

static int kit_setup(void **state)
{
    struct kit *k = mem_zalloc(sizeof *k);
    struct berth_err err = {0};
    char unenforced[CGROUP_LIST_MAX];
    struct cgroup_limits none = {0};
    *state = k;
    (void)snprintf(k->name, sizeof k->name, "berth-guard-%d", (int)getpid());
    if (geteuid() != 0 || cgroups_open("/sys/fs/cgroup", k->name, &k->groups, &err) < 0)
        return 0;
    k->guard = port_guard_new();
    if (cgroup_make(k->groups, "job", &none, unenforced, &err) < 0 ||
        cgroup_make(k->groups, "app", &none, unenforced, &err) < 0)
        fail_msg("%s", err.text);
    if (!cgroup_unified(k->groups, "job", k->job, sizeof k->job) ||
        !cgroup_unified(k->groups, "app", k->app, sizeof k->app))
        k->job[0] = '\0';
    return 0;
}

static int kit_teardown(void **state)
{
    struct kit *k = *state;
    port_guard_free(k->guard);
    if (k->groups) {
        (void)cgroup_remove(k->groups, "job");
        (void)cgroup_remove(k->groups, "app");
        (void)cgroups_remove(k->groups);
    }
    cgroups_free(k->groups);
    mem_free(k);
    return 0;
}

/* Skips the test if kernel support or privileges are missing. */
#define NEEDS_GUARD(k)                                                                                                 \
    do {                                                                                                               \
        struct berth_err err_ = {0};                                                                                   \
        if (!(k)->groups || !(k)->job[0] ||                                                                            \
            port_guard_put((k)->guard, JOB, (k)->job, JOB_OWNER, &err_) == -EOPNOTSUPP) {                              \
            print_message("skip: no guard here: %s\n", err_.text);                                                     \
            skip();                                                                                                    \
        }                                                                                                              \
    } while (0)

static bool enter(const char *group)
{
    char path[300];
    (void)snprintf(path, sizeof path, "%s/cgroup.procs", group);
    int procs = open(path, O_WRONLY | O_CLOEXEC);
    bool in = procs >= 0 && write(procs, "0", 1) == 1;
    if (procs >= 0)
        (void)close(procs);
    return in;
}

/* Binds in a process of the cgroup with its own network namespace; returns 0, or the errno of bind(). */
static int bind_in(const char *group, int family, int type, uint16_t port)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (!enter(group) || unshare(CLONE_NEWNET) < 0)
            _exit(255);
        int fd = socket(family, type | SOCK_CLOEXEC, 0);
        struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
        struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
        int rc = family == AF_INET ? bind(fd, (struct sockaddr *)&v4, sizeof v4)
                                   : bind(fd, (struct sockaddr *)&v6, sizeof v6);
        _exit(rc < 0 ? errno : 0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 255);
    return WEXITSTATUS(status);
}

static void ports_of_others_cannot_be_bound(void **state)
{
    struct kit *k = *state;
    struct berth_err err = {0};
    static const struct {
        uint16_t port;
        int job, app;
    } rows[] = {
        {BLOCK,                   EPERM, 0},
        {BLOCK + BLOCK_PORTS - 1, EPERM, 0},
        {BLOCK - 1,               0,     0},
        {BLOCK + BLOCK_PORTS,     0,     0},
        {0,                       0,     0},
        {65535,                   0,     0},
    };
    static const struct {
        int family, type;
    } kinds[] = {
        {AF_INET,  SOCK_STREAM},
        {AF_INET,  SOCK_DGRAM },
        {AF_INET6, SOCK_STREAM},
        {AF_INET6, SOCK_DGRAM },
    };
    NEEDS_GUARD(k);
    if (port_guard_put(k->guard, APP, k->app, APP_OWNER, &err) < 0)
        fail_msg("%s", err.text);
    port_guard_reserve(k->guard, APP, BLOCK, BLOCK_PORTS, APP_OWNER);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < sizeof kinds / sizeof *kinds; j++) {
            int job = bind_in(k->job, kinds[j].family, kinds[j].type, rows[i].port);
            int app = bind_in(k->app, kinds[j].family, kinds[j].type, rows[i].port);
            if (job != rows[i].job || app != rows[i].app)
                fail_msg("port %u, kind %zu: %s and %s", rows[i].port, j, strerror(job), strerror(app));
        }
}

static void denied_binds_are_reported(void **state)
{
    struct kit *k = *state;
    uint16_t port = 0;
    NEEDS_GUARD(k);
    assert_false(port_guard_claimed(k->guard, JOB, &port));
    port_guard_reserve(k->guard, APP, BLOCK, BLOCK_PORTS, APP_OWNER);
    assert_int_equal(bind_in(k->job, AF_INET, SOCK_STREAM, BLOCK + 3), EPERM);
    assert_int_equal(bind_in(k->job, AF_INET6, SOCK_STREAM, BLOCK + 5), EPERM);
    assert_true(port_guard_claimed(k->guard, JOB, &port));
    assert_int_equal(port, BLOCK + 5);
    assert_false(port_guard_claimed(k->guard, JOB, &port)); /* reported only once */
    assert_false(port_guard_claimed(k->guard, 99, &port));
}

/* Two instances of an app share its block: it stays reserved until the last one has ended. */
static void ports_are_released_with_last_instance(void **state)
{
    struct kit *k = *state;
    NEEDS_GUARD(k);
    port_guard_reserve(k->guard, APP, BLOCK, BLOCK_PORTS, APP_OWNER);
    port_guard_reserve(k->guard, APP + 1, BLOCK, BLOCK_PORTS, APP_OWNER);
    port_guard_drop(k->guard, APP);
    assert_int_equal(bind_in(k->job, AF_INET, SOCK_STREAM, BLOCK), EPERM);
    port_guard_drop(k->guard, APP + 1);
    assert_int_equal(bind_in(k->job, AF_INET, SOCK_STREAM, BLOCK), 0);
}

/* Programs of an earlier agent stay in force until those of the next agent, with its table, replace them. */
static void next_agent_replaces_programs(void **state)
{
    struct kit *k = *state;
    struct berth_err err = {0};
    uint16_t port = 0;
    NEEDS_GUARD(k);
    port_guard_reserve(k->guard, APP, BLOCK, BLOCK_PORTS, APP_OWNER);
    port_guard_free(k->guard);
    k->guard = port_guard_new();
    assert_int_equal(bind_in(k->job, AF_INET, SOCK_STREAM, BLOCK), EPERM); /* in force without an agent */
    port_guard_reserve(k->guard, APP, BLOCK + 100, BLOCK_PORTS, APP_OWNER);
    if (port_guard_put(k->guard, JOB, k->job, JOB_OWNER, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(bind_in(k->job, AF_INET, SOCK_STREAM, BLOCK), 0);
    assert_int_equal(bind_in(k->job, AF_INET, SOCK_STREAM, BLOCK + 100), EPERM);
    assert_true(port_guard_claimed(k->guard, JOB, &port));
    assert_int_equal(port, BLOCK + 100);
}

/* Starts a process of the job that binds the port before it is reserved; it exits when its `go` is closed. */
static pid_t holder_start(const char *group, int type, uint16_t port, int *ret_go)
{
    int ready[2], go[2];
    char byte;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(go, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
        (void)close(go[1]);
        int fd = enter(group) ? socket(AF_INET6, type | SOCK_CLOEXEC, 0) : -1;
        if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || (type == SOCK_STREAM && listen(fd, 1) < 0))
            _exit(1);
        (void)!write(ready[1], "x", 1);
        (void)!read(go[0], &byte, 1);
        _exit(0);
    }
    (void)close(ready[1]);
    (void)close(go[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    *ret_go = go[1];
    return pid;
}

/* A port that was bound before its reservation stays bound, and its holder is reported once. */
static void holders_are_found(void **state)
{
    struct kit *k = *state;
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM};
    struct berth_err err = {0};
    uint16_t port = 0;
    NEEDS_GUARD(k);
    assert_int_equal(unshare(CLONE_NEWNET), 0); /* no other process uses these ports */
    if (port_guard_put(k->guard, APP, k->app, APP_OWNER, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < 2; i++) {
        int go = -1, own_go = -1;
        uint16_t at = (uint16_t)(BLOCK + 2 + i);
        pid_t pid = holder_start(k->job, types[i], at, &go);
        pid_t own = holder_start(k->app, types[i], BLOCK, &own_go);
        port_guard_poll(k->guard);
        assert_false(port_guard_claimed(k->guard, JOB, &port)); /* not reserved */
        port_guard_reserve(k->guard, APP, BLOCK, BLOCK_PORTS, APP_OWNER);
        port_guard_poll(k->guard);
        assert_true(port_guard_claimed(k->guard, JOB, &port));
        assert_int_equal(port, at);
        port_guard_poll(k->guard);
        assert_false(port_guard_claimed(k->guard, JOB, &port));
        assert_false(port_guard_claimed(k->guard, APP, &port));
        (void)close(go);
        (void)close(own_go);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_int_equal(waitpid(own, NULL, 0), own);
        port_guard_drop(k->guard, APP);
        if (port_guard_put(k->guard, APP, k->app, APP_OWNER, &err) < 0)
            fail_msg("%s", err.text);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ports_of_others_cannot_be_bound),
        TEST(denied_binds_are_reported),
        TEST(ports_are_released_with_last_instance),
        TEST(next_agent_replaces_programs),
        TEST(holders_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
