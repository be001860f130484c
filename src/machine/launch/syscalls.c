#include "machine/launch/syscalls.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCH_OURS AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH_OURS AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH_OURS AUDIT_ARCH_RISCV64
#else
#error "syscalls.c: how does the kernel's audit name this processor?"
#endif

#define X32 0x40000000u /* system call numbers of the x32 ABI start here */

#define CALL(name)                                                                                                     \
    {                                                                                                                  \
#name, SYS_##name, EPERM, CALL_ANY, 0, 0                                                                       \
    }
#define BIT(name, argument, value)                                                                                     \
    {                                                                                                                  \
#name, SYS_##name, EPERM, CALL_BIT, argument, value                                                            \
    }
#define EQUAL(name, argument, value)                                                                                   \
    {                                                                                                                  \
#name, SYS_##name, EPERM, CALL_EQUAL, argument, value                                                          \
    }
#define NAMESPACES(name)                                                                                               \
    BIT(name, 0, CLONE_NEWNS), BIT(name, 0, CLONE_NEWCGROUP), BIT(name, 0, CLONE_NEWUTS), BIT(name, 0, CLONE_NEWIPC),  \
        BIT(name, 0, CLONE_NEWUSER), BIT(name, 0, CLONE_NEWPID), BIT(name, 0, CLONE_NEWNET)

/* clang-format off */
const struct syscall_rule syscall_rules[] = {
    {"clone3", SYS_clone3, ENOSYS, CALL_ANY, 0, 0},
    /* machine-wide: clock, host name, swap, kernel modules */
    CALL(acct), CALL(clock_adjtime), CALL(clock_settime), CALL(delete_module), CALL(finit_module), CALL(init_module),
    CALL(kexec_file_load), CALL(kexec_load), CALL(quotactl), CALL(reboot), CALL(setdomainname), CALL(sethostname),
    CALL(settimeofday), CALL(swapoff), CALL(swapon), CALL(syslog), CALL(vhangup),
#ifdef SYS_iopl
    CALL(ioperm), CALL(iopl),
#endif
    /* mounts, and namespaces of others */
    CALL(chroot), CALL(fsconfig), CALL(fsmount), CALL(fsopen), CALL(fspick), CALL(mount), CALL(mount_setattr),
    CALL(move_mount), CALL(open_by_handle_at), CALL(open_tree), CALL(pivot_root), CALL(setns), CALL(umount2),
    /* new namespaces: they grant capabilities to unprivileged processes */
    NAMESPACES(clone), NAMESPACES(unshare),
    /* large kernel subsystems that ordinary programs do not use */
    CALL(add_key), CALL(bpf), CALL(io_uring_enter), CALL(io_uring_register), CALL(io_uring_setup), CALL(keyctl),
    CALL(perf_event_open), CALL(request_key), CALL(userfaultfd),
    EQUAL(socket, 0, AF_ALG), EQUAL(socket, 0, AF_RDS), EQUAL(socket, 0, AF_TIPC), EQUAL(socket, 0, AF_VSOCK),
    EQUAL(socket, 0, AF_XDP),
    /* injecting input into terminals */
    EQUAL(ioctl, 1, TIOCSTI), EQUAL(ioctl, 1, TIOCLINUX),
};

/* Additional rules for the net sandbox, which only connects, reads and writes open descriptors. */
#define WRITES(name, argument) BIT(name, argument, O_WRONLY), BIT(name, argument, O_RDWR), BIT(name, argument, O_CREAT)
const struct syscall_rule syscall_network_rules[] = {
    /* programs and other processes */
    CALL(execve), CALL(execveat), {"clone", SYS_clone, EPERM, CALL_CLEAR, 0, CLONE_THREAD}, CALL(kcmp), CALL(pidfd_getfd),
    CALL(process_madvise), CALL(process_vm_readv), CALL(process_vm_writev), CALL(ptrace),
    /* incoming connections */
    CALL(accept), CALL(accept4), CALL(listen),
    /* creating, changing and removing files */
    {"openat2", SYS_openat2, ENOSYS, CALL_ANY, 0, 0}, WRITES(openat, 2), CALL(fallocate), CALL(fchmod), CALL(fchmodat),
    CALL(fchown), CALL(fchownat), CALL(fremovexattr), CALL(fsetxattr), CALL(linkat), CALL(lremovexattr), CALL(lsetxattr),
    CALL(mkdirat), CALL(mknodat), CALL(removexattr), CALL(renameat2), CALL(setxattr), CALL(symlinkat), CALL(truncate),
    CALL(unlinkat), CALL(utimensat),
#ifdef SYS_renameat
    CALL(renameat),
#endif
#ifdef SYS_open
    CALL(chmod), CALL(chown), CALL(creat), CALL(fork), CALL(lchown), CALL(link), CALL(mkdir), CALL(mknod), CALL(rename),
    CALL(rmdir), CALL(symlink), CALL(unlink), CALL(utime), CALL(utimes), CALL(vfork), WRITES(open, 1),
#endif
    /* shared memory and message queues that outlive a process */
    CALL(mq_open), CALL(msgget), CALL(semget), CALL(shmget),
};
/* clang-format on */
const size_t syscall_rules_len = sizeof syscall_rules / sizeof *syscall_rules;
const size_t syscall_network_rules_len = sizeof syscall_network_rules / sizeof *syscall_network_rules;

/* ---- as a seccomp filter ---------------------------------------------------------------------------------------- */

enum {
    RULE_STEPS = 5,
    RULES_MAX =
        sizeof syscall_rules / sizeof *syscall_rules + sizeof syscall_network_rules / sizeof *syscall_network_rules,
    STEPS_MAX = 8 + RULE_STEPS * RULES_MAX
};

struct seccomp_program {
    struct sock_filter at[STEPS_MAX];
    unsigned short len;
};

static void step(struct seccomp_program *p, unsigned code, unsigned if_true, unsigned if_false, uint32_t k)
{
    assert(p->len < STEPS_MAX);
    p->at[p->len++] =
        (struct sock_filter){.code = (uint16_t)code, .jt = (uint8_t)if_true, .jf = (uint8_t)if_false, .k = k};
}

static void load(struct seccomp_program *p, size_t offset)
{
    step(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

/* If the loaded value passes the test, the system call fails with `code`. */
static void refuse_if(struct seccomp_program *p, unsigned test, uint32_t value, int code)
{
    step(p, BPF_JMP | test | BPF_K, 0, 1, value);
    step(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | (uint32_t)code);
}

static void rule_add(struct seccomp_program *p, const struct syscall_rule *r)
{
    size_t low = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? sizeof(uint32_t) : 0;

    if (r->test == CALL_ANY) {
        refuse_if(p, BPF_JEQ, (uint32_t)r->number, r->code);
        return;
    }
    step(p, BPF_JMP | BPF_JEQ | BPF_K, 0, RULE_STEPS - 1, (uint32_t)r->number);
    load(p, offsetof(struct seccomp_data, args) + r->argument * sizeof(uint64_t) + low);
    if (r->test == CALL_CLEAR) {
        step(p, BPF_JMP | BPF_JSET | BPF_K, 1, 0, r->value);
        step(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | (uint32_t)r->code);
    } else {
        refuse_if(p, r->test == CALL_BIT ? BPF_JSET : BPF_JEQ, r->value, r->code);
    }
    load(p, offsetof(struct seccomp_data, nr));
}

static int narrow(const struct syscall_rule *more, size_t more_len)
{
    struct seccomp_program p = {0};

    load(&p, offsetof(struct seccomp_data, arch));
    step(&p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCH_OURS);
    step(&p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS);
    load(&p, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    refuse_if(&p, BPF_JGE, X32, ENOSYS);
#endif
    for (size_t i = 0; i < syscall_rules_len; i++)
        rule_add(&p, &syscall_rules[i]);
    for (size_t i = 0; i < more_len; i++)
        rule_add(&p, &more[i]);
    step(&p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &(struct sock_fprog){.len = p.len, .filter = p.at}) == 0 ? 0
                                                                                                               : -errno;
}

int syscalls_narrow(struct berth_err *err)
{
    int rc = narrow(NULL, 0);

    if (rc == 0)
        return 0;
    return err_set(err, -rc,
                   "cannot restrict its system calls: %s; 'berth-agent --all-syscalls' turns the restriction off",
                   strerror(-rc));
}

int syscalls_narrow_network(struct berth_err *err)
{
    int rc = narrow(syscall_network_rules, syscall_network_rules_len);

    if (rc == 0)
        return 0;
    return err_set(err, -rc, "cannot restrict the system calls of the net sandbox: %s", strerror(-rc));
}
