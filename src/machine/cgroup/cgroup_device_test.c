/* cgroup_device_test.c - device restrictions in real cgroups. Opening a device without a driver returns ENXIO if it is
 * allowed, and EPERM if it is denied.
 */
#include <linux/bpf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "machine/cgroup/cgroup.h"
#include "machine/launch/folder_test.h"

enum { MAJOR = 195, MAJOR_OTHER = 240, MINORS = 4, MINORS_MOST = 256, EXIT_LOST = 99 };

/* Returns the result of opening the device in a process of the cgroup. */
static int opened(struct cgroups *c, const char *path)
{
    char *paths[CGROUP_PATHS_MAX];
    size_t len = cgroup_procs_paths(c, "a", paths);
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        for (size_t i = 0; i < len; i++) {
            int fd = open(paths[i], O_WRONLY | O_CLOEXEC);
            if (fd < 0 || write(fd, "0", 1) != 1)
                _exit(EXIT_LOST);
        }
        char name[CGROUP_LIST_MAX] = "";
        if (cgroup_of_process(c, getpid(), name) < 0 || strcmp(name, "a") != 0)
            _exit(EXIT_LOST);
        _exit(open(path, O_RDWR | O_CLOEXEC) < 0 ? errno : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    for (size_t i = 0; i < len; i++)
        mem_free(paths[i]);
    return WEXITSTATUS(status);
}

/* Checks independently of the tested code that a v2 hierarchy exists and the kernel loads device programs. */
static bool kernel_takes_rules(void)
{
    const struct bpf_insn pass[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 1},
        {.code = BPF_JMP | BPF_EXIT                                  }
    };
    union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE,
                           .insns = (uint64_t)(uintptr_t)pass,
                           .insn_cnt = ROWS(pass),
                           .license = (uint64_t)(uintptr_t) "MIT"};
    long fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr);
    if (fd >= 0)
        (void)close((int)fd);
    return fd >= 0 && (access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0 ||
                       access("/sys/fs/cgroup/unified/cgroup.controllers", F_OK) == 0);
}

static void end(struct cgroups *c)
{
    (void)cgroup_kill(c, "a");
    (void)cgroup_remove(c, "a");
    (void)cgroups_remove(c);
    cgroups_free(c);
}

static void only_listed_devices_can_be_opened(void **state)
{
    static const unsigned allowed[] = {0, 2};
    struct cgroups *c = NULL;
    char name[64], unenforced[CGROUP_LIST_MAX], group[CGROUP_LIST_MAX];
    (void)state;
    CLEANUP(folder) struct folder f = folder_new();
    (void)snprintf(name, sizeof name, "berth-test-%d-device", (int)getpid());
    assert_int_equal(cgroups_open("/sys/fs/cgroup", name, &c, NULL), 0);
    const struct cgroup_limits limits = {0};
    if (geteuid() != 0 || cgroup_make(c, "a", &limits, unenforced, NULL) < 0 ||
        mknod(folder_at(&f, "probe"), S_IFCHR | 0600, makedev(MAJOR, 0)) < 0) {
        print_message("skip: needs root, control groups and mknod\n");
        end(c);
        skip();
    }
    int rc = cgroup_devices_only(c, "a", MAJOR, allowed, ROWS(allowed));
    if (rc == 0)
        rc = cgroup_devices_only(c, "a", MAJOR_OTHER, NULL, 0);
    if (!kernel_takes_rules()) {
        assert_true(rc < 0);
        print_message("skip: the kernel takes no rules for devices\n");
        end(c);
        skip();
    }
    assert_int_equal(rc, 0);
    for (unsigned i = 0; i < MINORS; i++) {
        char device[16];
        (void)snprintf(device, sizeof device, "d%u", i);
        assert_int_equal(mknod(folder_at(&f, device), S_IFCHR | 0600, makedev(MAJOR, i)), 0);
        assert_int_equal(opened(c, folder_at(&f, device)), i % 2 ? EPERM : ENXIO);
    }
    assert_int_equal(mknod(folder_at(&f, "other"), S_IFCHR | 0600, makedev(MAJOR_OTHER, 5)), 0);
    assert_int_equal(opened(c, folder_at(&f, "other")), EPERM);
    assert_int_equal(opened(c, "/dev/null"), 0);
    unsigned most[MINORS_MOST]; /* a second rule for the same major number can only deny more */
    for (unsigned i = 0; i < MINORS_MOST; i++)
        most[i] = i + 1;
    assert_int_equal(cgroup_devices_only(c, "a", MAJOR, most, ROWS(most)), 0);
    assert_int_equal(opened(c, folder_at(&f, "d0")), EPERM);
    assert_int_equal(opened(c, folder_at(&f, "d1")), EPERM);
    assert_int_equal(opened(c, folder_at(&f, "d2")), ENXIO);
    assert_int_equal(cgroup_of_process(c, getpid(), group), -ENOENT);
    assert_int_equal(cgroup_devices_only(c, "b", MAJOR, allowed, ROWS(allowed)), -ENOENT);
    end(c);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_listed_devices_can_be_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
