/* cgroup_device.c - restricts device access of a cgroup by a BPF program (cgroup v2).
 *
 * The program has a few instructions: it denies character devices of the major number with a minor number that is not
 * listed; everything else is left to other rules. It is attached to the cgroup and removed with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/vec.h"
#include "machine/cgroup/cgroup_parts.h"
#include "machine/launch/state_file.h"

enum { KIND_MASK = 0xffff, MINORS_MAX = 256 };

static long bpf(int command, union bpf_attr *attr)
{
    return syscall(SYS_bpf, command, attr, sizeof *attr);
}

/* r1: the context, struct bpf_cgroup_dev_ctx; r0: 1 allows. */
static int program_load(unsigned major, const unsigned *minors, size_t len)
{
    static const char license[] = "MIT";
    VEC(struct bpf_insn) code = {0};
#define ADD(c, d, s, o, i)                                                                                             \
    vec_push(&code,                                                                                                    \
             ((struct bpf_insn){.code = (c), .dst_reg = (d), .src_reg = (s), .off = (int16_t)(o), .imm = (int)(i)}))
    short to_end = (short)(len + 5); /* offset of "allow", behind the comparisons of minor numbers */
    ADD(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, BPF_REG_1, offsetof(struct bpf_cgroup_dev_ctx, access_type), 0);
    ADD(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_2, 0, 0, KIND_MASK);
    ADD(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_2, 0, to_end, BPF_DEVCG_DEV_CHAR);
    ADD(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, BPF_REG_1, offsetof(struct bpf_cgroup_dev_ctx, major), 0);
    ADD(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_2, 0, to_end - 2, major);
    ADD(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, BPF_REG_1, offsetof(struct bpf_cgroup_dev_ctx, minor), 0);
    for (size_t i = 0; i < len; i++)
        ADD(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_2, 0, len - i + 1, minors[i]); /* to "allow" */
    ADD(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0);
    ADD(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
    ADD(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 1);
    ADD(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
#undef ADD
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attr.insns = (uint64_t)(uintptr_t)code.at;
    attr.insn_cnt = (uint32_t)code.len;
    attr.license = (uint64_t)(uintptr_t)license;
    long fd = bpf(BPF_PROG_LOAD, &attr);
    int rc = fd < 0 ? -errno : (int)fd;
    vec_done(&code);
    return rc;
}

int cgroup_devices_only(struct cgroups *c, const char *name, unsigned major, const unsigned *minors, size_t len)
{
    const struct cgroup_tree *t = NULL;
    char path[GROUP_PATH_MAX];
    if (len > MINORS_MAX)
        return -E2BIG;
    for (size_t i = 0; i < c->trees_len && !t; i++)
        t = c->trees[i].ours && c->trees[i].v2 ? &c->trees[i] : NULL;
    if (!t || !cgfile_path(t, name, NULL, path))
        return -ENODEV;
    CLEANUP(close_fd) int group = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (group < 0)
        return -errno;
    CLEANUP(close_fd) int program = program_load(major, minors, len);
    if (program < 0)
        return program;
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.target_fd = (uint32_t)group;
    attr.attach_bpf_fd = (uint32_t)program;
    attr.attach_type = BPF_CGROUP_DEVICE;
    attr.attach_flags = BPF_F_ALLOW_MULTI; /* a container's runtime may add further restrictions */
    return bpf(BPF_PROG_ATTACH, &attr) < 0 ? -errno : 0;
}

int cgroup_of_process(const struct cgroups *c, pid_t pid, char ret_name[static CGROUP_LIST_MAX])
{
    char path[64], text[GROUP_PATH_MAX];
    (void)snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (len < 0)
        return -ESRCH;
    text[len] = '\0';
    size_t own = strlen(c->name);
    for (char *line = text, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        next += *next == '\n' ? (*next = '\0', 1) : 0;
        for (char *at = strstr(line, c->name); at; at = strstr(at + 1, c->name)) {
            const char *name = at + own + 1;
            size_t name_len = strcspn(name, "/");
            if (at[own] != '/' || name_len == 0 || name_len >= CGROUP_LIST_MAX)
                continue;
            memcpy(ret_name, name, name_len);
            ret_name[name_len] = '\0';
            return 0;
        }
    }
    return -ENOENT;
}
