/* net_meter.c - two BPF programs, and the memory page that they share with the agent. */
#include "machine/net/net_meter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/launch/state_file.h"

#define SECOND_NS INT64_C(1000000000)
/* Burst that is allowed after a pause. TCP that has lost a whole window waits for 200 ms; it may receive that amount
 * afterwards, or it would never come near its bound. */
#define BURST_NS (SECOND_NS / 4)
#define DEBT_NS (SECOND_NS / 4)        /* maximum excess over the bound; beyond it everything is dropped */
#define LOSS_EVERY_NS (SECOND_NS / 50) /* interval of single drops below that */

enum { LOOPBACK = 1, COST_SHIFT = 10, PROGRAMS_MAX = 16 };

/* Shared with the kernel. Receiving n bytes costs n * in_cost >> COST_SHIFT ns; `in_next_ns` is the time when all
 * received bytes are paid for, `in_lost_ns` the time of the last dropped packet. */
struct net_meter_cell {
    uint64_t in_bytes, out_bytes;
    uint64_t in_cost, in_next_ns, in_lost_ns;
    uint32_t out_class, pad;
    struct net_period_start base; /* used by the agent only */
};

struct net_meter {
    int map;
    struct net_meter_cell *cell;
};

static const char name[] = "berth_net"; /* name of the programs and of the map */

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
    long rc = syscall(SYS_bpf, cmd, attr, sizeof *attr);
    return rc < 0 ? -errno : (int)rc;
}

/* ---- programs --------------------------------------------------------------------------------------------------- */

#define INSN(c, d, s, o, i)                                                                                            \
    ((struct bpf_insn){.code = (uint8_t)(c), .dst_reg = (d), .src_reg = (s), .off = (int16_t)(o), .imm = (i)})
#define MOVE(d, s) INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define SET(d, i) INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define LOAD(size, d, s, o) INSN(BPF_LDX | BPF_MEM | (size), d, s, o, 0)
#define STORE(size, d, s, o) INSN(BPF_STX | BPF_MEM | (size), d, s, o, 0)
#define ADD_AT(d, o, s) INSN(BPF_STX | BPF_ATOMIC | BPF_DW, d, s, o, BPF_ADD)
#define CELL_OF(d, map) INSN(BPF_LD | BPF_DW | BPF_IMM, d, BPF_PSEUDO_MAP_VALUE, 0, map), INSN(0, 0, 0, 0, 0)
#define IF_IS(d, i, skip) INSN(BPF_JMP | BPF_JEQ | BPF_K, d, 0, skip, i)
#define CALL(f) INSN(BPF_JMP | BPF_CALL, 0, 0, 0, f)
#define EXIT INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
#define CELL(field) offsetof(struct net_meter_cell, field)
#define PACKET(field) offsetof(struct __sk_buff, field)

static int program_load(const struct bpf_insn *program, size_t len, enum bpf_attach_type type)
{
    union bpf_attr load = {
        .prog_type = BPF_PROG_TYPE_CGROUP_SKB,
        .insns = (uint64_t)(uintptr_t)program,
        .insn_cnt = (uint32_t)len,
        .license = (uint64_t)(uintptr_t) "",
        .expected_attach_type = type,
    };
    memcpy(load.prog_name, name, sizeof name);
    return bpf(BPF_PROG_LOAD, &load);
}

/* Registers: 0 is the result, 1 the packet, 6 to 9 survive calls. A jump offset counts skipped instructions; loading an
 * address takes two. */
static int out_load(int map)
{
    const struct bpf_insn program[] = {
        LOAD(BPF_W, 2, 1, PACKET(ifindex)),
        IF_IS(2, LOOPBACK, 7),
        LOAD(BPF_W, 2, 1, PACKET(len)),
        CELL_OF(7, map),
        ADD_AT(7, CELL(out_bytes), 2),
        LOAD(BPF_W, 3, 7, CELL(out_class)),
        IF_IS(3, 0, 1),
        STORE(BPF_W, 1, 3, PACKET(priority)),
        SET(0, 1),
        EXIT,
    };
    return program_load(program, sizeof program / sizeof *program, BPF_CGROUP_INET_EGRESS);
}

/* Above the bound a packet is dropped now and then, so that TCP slows down instead of stopping; far above it every
 * packet is dropped. */
static int in_load(int map)
{
    const struct bpf_insn program[] = {
        LOAD(BPF_W, 2, 1, PACKET(ifindex)),
        IF_IS(2, LOOPBACK, 28),
        LOAD(BPF_W, 6, 1, PACKET(len)),
        CELL_OF(7, map),
        LOAD(BPF_DW, 8, 7, CELL(in_cost)),
        IF_IS(8, 0, 22),
        CALL(BPF_FUNC_ktime_get_boot_ns),
        LOAD(BPF_DW, 1, 7, CELL(in_next_ns)),
        MOVE(2, 0),
        INSN(BPF_ALU64 | BPF_SUB | BPF_K, 2, 0, 0, BURST_NS),
        INSN(BPF_JMP | BPF_JGE | BPF_X, 1, 2, 2, 0),
        MOVE(1, 2), /* after a pause: keep only the burst */
        STORE(BPF_DW, 7, 1, CELL(in_next_ns)),
        INSN(BPF_JMP | BPF_JGE | BPF_X, 0, 1, 10, 0), /* within the bound */
        MOVE(2, 1),
        INSN(BPF_ALU64 | BPF_SUB | BPF_X, 2, 0, 0, 0),
        INSN(BPF_JMP | BPF_JGE | BPF_K, 2, 0, 5, DEBT_NS),
        LOAD(BPF_DW, 3, 7, CELL(in_lost_ns)),
        MOVE(2, 0),
        INSN(BPF_ALU64 | BPF_SUB | BPF_X, 2, 3, 0, 0),
        INSN(BPF_JMP | BPF_JLT | BPF_K, 2, 0, 3, LOSS_EVERY_NS),
        STORE(BPF_DW, 7, 0, CELL(in_lost_ns)),
        SET(0, 0), /* dropped and not counted */
        EXIT,
        MOVE(3, 6),
        INSN(BPF_ALU64 | BPF_MUL | BPF_X, 3, 8, 0, 0),
        INSN(BPF_ALU64 | BPF_RSH | BPF_K, 3, 0, 0, COST_SHIFT),
        ADD_AT(7, CELL(in_next_ns), 3),
        ADD_AT(7, CELL(in_bytes), 6),
        SET(0, 1),
        EXIT,
    };
    return program_load(program, sizeof program / sizeof *program, BPF_CGROUP_INET_INGRESS);
}

static int attach(int group, int map, enum bpf_attach_type type)
{
    CLEANUP(close_fd) int program = type == BPF_CGROUP_INET_EGRESS ? out_load(map) : in_load(map);
    if (program < 0)
        return program;
    union bpf_attr attr = {.target_fd = (uint32_t)group,
                           .attach_bpf_fd = (uint32_t)program,
                           .attach_type = type,
                           .attach_flags = BPF_F_ALLOW_MULTI};
    return bpf(BPF_PROG_ATTACH, &attr);
}

/* ---- finding existing programs ---------------------------------------------------------------------------------- */

/* Returns the map of one of our programs; -ENOENT: it is not ours. */
static int map_of(uint32_t program_id)
{
    union bpf_attr by_id = {.prog_id = program_id};
    CLEANUP(close_fd) int program = bpf(BPF_PROG_GET_FD_BY_ID, &by_id);
    if (program < 0)
        return program;
    uint32_t map_id = 0;
    struct bpf_prog_info info = {.nr_map_ids = 1, .map_ids = (uint64_t)(uintptr_t)&map_id};
    union bpf_attr ask = {
        .info = {.bpf_fd = (uint32_t)program, .info_len = sizeof info, .info = (uint64_t)(uintptr_t)&info}
    };
    int rc = bpf(BPF_OBJ_GET_INFO_BY_FD, &ask);
    if (rc < 0)
        return rc;
    if (strncmp(info.name, name, sizeof info.name) != 0 || !map_id)
        return -ENOENT;
    union bpf_attr map = {.map_id = map_id};
    return bpf(BPF_MAP_GET_FD_BY_ID, &map);
}

static int find(int group, enum bpf_attach_type type)
{
    uint32_t ids[PROGRAMS_MAX] = {0};
    union bpf_attr ask = {
        .query = {.target_fd = (uint32_t)group,
                  .attach_type = type,
                  .prog_ids = (uint64_t)(uintptr_t)ids,
                  .prog_cnt = PROGRAMS_MAX}
    };
    int rc = bpf(BPF_PROG_QUERY, &ask), map = -ENOENT;
    for (uint32_t i = 0; rc >= 0 && map < 0 && i < ask.query.prog_cnt; i++)
        map = map_of(ids[i]);
    return rc < 0 ? rc : map;
}

static int map_make(void)
{
    union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY,
                           .key_size = sizeof(uint32_t),
                           .value_size = sizeof(struct net_meter_cell),
                           .max_entries = 1,
                           .map_flags = BPF_F_MMAPABLE};
    memcpy(attr.map_name, name, sizeof name);
    return bpf(BPF_MAP_CREATE, &attr);
}

/* ---- meters ----------------------------------------------------------------------------------------------------- */

static const enum bpf_attach_type types[] = {BPF_CGROUP_INET_EGRESS, BPF_CGROUP_INET_INGRESS};
enum { TYPES = sizeof types / sizeof *types };

static int page_map(struct net_meter *m)
{
    void *page = mmap(NULL, sizeof(struct net_meter_cell), PROT_READ | PROT_WRITE, MAP_SHARED, m->map, 0);
    if (page == MAP_FAILED)
        return -errno;
    m->cell = page;
    return 0;
}

/* Finds the existing meter of the cgroup; `ret_there` tells which programs are attached. */
static int meter_take(int group, struct net_meter *m, bool ret_there[static TYPES])
{
    for (size_t i = 0; i < TYPES; i++) {
        int map = find(group, types[i]);
        if (map < 0 && map != -ENOENT)
            return map;
        ret_there[i] = map >= 0;
        if (ret_there[i] && m->map < 0)
            m->map = map;
        else
            close_fd_cleanup(&map);
    }
    return m->map >= 0 ? page_map(m) : -ENOENT;
}

static int meter_make(const char *path, struct net_meter *m, bool only_find)
{
    bool there[TYPES];
    CLEANUP(close_fd) int group = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (group < 0)
        return -errno;
    int rc = meter_take(group, m, there);
    if (only_find || (rc < 0 && rc != -ENOENT))
        return rc;
    if (rc == -ENOENT) {
        m->map = map_make();
        rc = m->map < 0 ? m->map : page_map(m);
    }
    for (size_t i = 0; rc == 0 && i < TYPES; i++)
        rc = there[i] ? 0 : attach(group, m->map, types[i]);
    return rc;
}

int net_meter_find(const char *group, struct net_meter **ret)
{
    struct net_meter *m = mem_zalloc(sizeof *m);
    m->map = -1;
    int rc = meter_make(group, m, true);
    if (rc < 0)
        net_meter_close(m);
    else
        *ret = m;
    return rc;
}

int net_meter_open(const char *group, struct net_meter **ret, struct berth_err *err)
{
    struct net_meter *m = mem_zalloc(sizeof *m);
    m->map = -1;
    int rc = meter_make(group, m, false);
    if (rc < 0) {
        net_meter_close(m);
        bool missing = rc == -EINVAL || rc == -ENOSYS || rc == -EPERM || rc == -EACCES;
        return err_set(err, missing ? EOPNOTSUPP : -rc, "cannot count the traffic of %s: %s", group, strerror(-rc));
    }
    *ret = m;
    return 0;
}

void net_meter_close(struct net_meter *m)
{
    if (!m)
        return;
    if (m->cell)
        (void)munmap(m->cell, sizeof *m->cell);
    close_fd_cleanup(&m->map);
    mem_free(m);
}

void net_meter_class(struct net_meter *m, uint32_t handle)
{
    __atomic_store_n(&m->cell->out_class, handle, __ATOMIC_RELAXED);
}

uint32_t net_meter_class_now(const struct net_meter *m)
{
    return __atomic_load_n(&m->cell->out_class, __ATOMIC_RELAXED);
}

void net_meter_bound(struct net_meter *m, int64_t bytes_per_s)
{
    uint64_t cost = bytes_per_s > 0 ? ((uint64_t)SECOND_NS << COST_SHIFT) / (uint64_t)bytes_per_s : 0;
    __atomic_store_n(&m->cell->in_cost, bytes_per_s > 0 && cost == 0 ? 1 : cost, __ATOMIC_RELAXED);
}

struct net_counts net_meter_counts(const struct net_meter *m)
{
    return (struct net_counts){(int64_t)__atomic_load_n(&m->cell->in_bytes, __ATOMIC_RELAXED),
                               (int64_t)__atomic_load_n(&m->cell->out_bytes, __ATOMIC_RELAXED)};
}

void net_meter_rebase(struct net_meter *m, struct net_period_start base)
{
    m->cell->base = base;
}

struct net_period_start net_meter_base(const struct net_meter *m)
{
    return m->cell->base;
}
