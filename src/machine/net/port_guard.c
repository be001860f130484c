#include "machine/net/port_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "machine/launch/state_file.h"
#include "machine/net/port_holder.h"

enum { PORTS = 1 << 16, PROGRAMS_MAX = 64 };

static const char name[] = "berth_port"; /* name of the programs and maps */

/* Shared with the kernel: denied bind calls of a cgroup. */
struct denied_bind_cell {
    uint64_t count;
    uint64_t port; /* of the last denied call */
};

struct reserved_ports {
    uint64_t id, owner;
    uint16_t start, count;
};

struct guarded_cgroup {
    uint64_t id, owner;
    uint64_t group; /* inode of its cgroup */
    int map;
    struct denied_bind_cell *cell;
    uint64_t seen;            /* last seen `count` of the cell */
    uint16_t found, reported; /* foreign port that it has bound; 0: none */
};

struct port_guard {
    pthread_mutex_t lock;
    int map;         /* the table; -1: not created yet, or not possible */
    uint64_t *owner; /* the table, indexed by port; shared with the kernel. 0: free */
    VEC(struct reserved_ports) reserved;
    VEC(struct guarded_cgroup) guarded;
};

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
    long rc = syscall(SYS_bpf, cmd, attr, sizeof *attr);
    return rc < 0 ? -errno : (int)rc;
}

/* Creates an array that BPF programs and this process share. */
static int map_make(size_t value_bytes, uint32_t entries, void **ret)
{
    union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY,
                           .key_size = sizeof(uint32_t),
                           .value_size = (uint32_t)value_bytes,
                           .max_entries = entries,
                           .map_flags = BPF_F_MMAPABLE};
    memcpy(attr.map_name, name, sizeof name);
    CLEANUP(close_fd) int map = bpf(BPF_MAP_CREATE, &attr);
    if (map < 0)
        return map;
    void *at = mmap(NULL, value_bytes * entries, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
    if (at == MAP_FAILED)
        return -errno;
    *ret = at;
    return take_fd(&map);
}

/* ---- program ---------------------------------------------------------------------------------------------------- */

#define INSN(c, d, s, o, i)                                                                                            \
    ((struct bpf_insn){.code = (uint8_t)(c), .dst_reg = (d), .src_reg = (s), .off = (int16_t)(o), .imm = (i)})
#define MOVE(d, s) INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define SET(d, i) INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define WIDE(d, kind, low, high)                                                                                       \
    INSN(BPF_LD | BPF_DW | BPF_IMM, d, kind, 0, (int32_t)(low)), INSN(0, 0, 0, 0, (int32_t)(high))

/* Registers: 0 is the result, 1 the address to bind, 6 to 9 survive calls. A jump offset counts skipped instructions; a
 * 64-bit constant takes two. */
static int program_load(int table, int cell, uint64_t owner, enum bpf_attach_type type)
{
    const struct bpf_insn program[] = {
        INSN(BPF_LDX | BPF_MEM | BPF_W, 6, 1, offsetof(struct bpf_sock_addr, user_port), 0),
        INSN(BPF_ALU | BPF_END | BPF_TO_BE, 6, 0, 0, 16), /* port in host byte order */
        INSN(BPF_STX | BPF_MEM | BPF_W, 10, 6, -4, 0),
        WIDE(1, BPF_PSEUDO_MAP_FD, table, 0),
        MOVE(2, 10),
        INSN(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -4),
        INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
        INSN(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 12, 0), /* never NULL: the array has an entry for each port */
        INSN(BPF_LDX | BPF_MEM | BPF_DW, 1, 0, 0, 0),
        INSN(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 10, 0), /* not reserved */
        WIDE(2, 0, owner, owner >> 32),
        INSN(BPF_JMP | BPF_JEQ | BPF_X, 1, 2, 7, 0), /* reserved for this owner */
        WIDE(7, BPF_PSEUDO_MAP_VALUE, cell, 0),
        SET(1, 1),
        INSN(BPF_STX | BPF_MEM | BPF_DW, 7, 6, offsetof(struct denied_bind_cell, port), 0),
        INSN(BPF_STX | BPF_ATOMIC | BPF_DW, 7, 1, offsetof(struct denied_bind_cell, count), BPF_ADD),
        SET(0, 0),
        INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
        SET(0, 1),
        INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
    };
    union bpf_attr load = {
        .prog_type = BPF_PROG_TYPE_CGROUP_SOCK_ADDR,
        .insns = (uint64_t)(uintptr_t)program,
        .insn_cnt = sizeof program / sizeof *program,
        .license = (uint64_t)(uintptr_t) "",
        .expected_attach_type = type,
    };
    memcpy(load.prog_name, name, sizeof name);
    return bpf(BPF_PROG_LOAD, &load);
}

/* Opens a program of ours, from an earlier agent or an earlier call; -ENOENT: it is not ours. */
static int open_own_program(uint32_t id)
{
    union bpf_attr by_id = {.prog_id = id};
    CLEANUP(close_fd) int program = bpf(BPF_PROG_GET_FD_BY_ID, &by_id);
    if (program < 0)
        return program;
    struct bpf_prog_info info = {0};
    union bpf_attr ask = {
        .info = {.bpf_fd = (uint32_t)program, .info_len = sizeof info, .info = (uint64_t)(uintptr_t)&info}
    };
    int rc = bpf(BPF_OBJ_GET_INFO_BY_FD, &ask);
    if (rc < 0)
        return rc;
    return strncmp(info.name, name, sizeof info.name) == 0 ? take_fd(&program) : -ENOENT;
}

/* Attaches the new program before it detaches old ones, so that the cgroup is guarded all the time. */
static int program_put(int group, int program, enum bpf_attach_type type)
{
    uint32_t ids[PROGRAMS_MAX] = {0};
    union bpf_attr ask = {
        .query = {.target_fd = (uint32_t)group,
                  .attach_type = type,
                  .prog_ids = (uint64_t)(uintptr_t)ids,
                  .prog_cnt = PROGRAMS_MAX}
    };
    int rc = bpf(BPF_PROG_QUERY, &ask);
    if (rc < 0)
        return rc;
    union bpf_attr put = {.target_fd = (uint32_t)group,
                          .attach_bpf_fd = (uint32_t)program,
                          .attach_type = type,
                          .attach_flags = BPF_F_ALLOW_MULTI};
    rc = bpf(BPF_PROG_ATTACH, &put);
    for (uint32_t i = 0; rc >= 0 && i < ask.query.prog_cnt; i++) {
        CLEANUP(close_fd) int old = open_own_program(ids[i]);
        union bpf_attr gone = {.target_fd = (uint32_t)group, .attach_bpf_fd = (uint32_t)old, .attach_type = type};
        if (old >= 0)
            (void)bpf(BPF_PROG_DETACH, &gone);
    }
    return rc;
}

/* ---- table ------------------------------------------------------------------------------------------------------ */

static void ports_set(struct port_guard *g, const struct reserved_ports *r, uint64_t owner)
{
    for (unsigned i = 0; g->owner && i < r->count && r->start + i < PORTS; i++)
        __atomic_store_n(&g->owner[r->start + i], owner, __ATOMIC_RELAXED);
}

/* Creates the table at the first use. */
static int table_make(struct port_guard *g)
{
    void *at = NULL;
    if (g->map >= 0)
        return 0;
    int map = map_make(sizeof *g->owner, PORTS, &at);
    if (map < 0)
        return map;
    g->map = map;
    g->owner = at;
    for (size_t i = 0; i < g->reserved.len; i++)
        ports_set(g, &g->reserved.at[i], g->reserved.at[i].owner);
    return 0;
}

void port_guard_reserve(struct port_guard *g, uint64_t id, uint16_t start, uint16_t count, uint64_t owner)
{
    const struct reserved_ports one = {.id = id, .owner = owner, .start = start, .count = count};
    (void)pthread_mutex_lock(&g->lock);
    vec_push(&g->reserved, one);
    ports_set(g, &one, owner);
    (void)pthread_mutex_unlock(&g->lock);
}

/* ---- cgroups ---------------------------------------------------------------------------------------------------- */

static void guarded_cgroup_done(struct guarded_cgroup *w)
{
    (void)munmap(w->cell, sizeof *w->cell);
    (void)close(w->map);
}

static struct guarded_cgroup *guarded_cgroup_find(struct port_guard *g, uint64_t id)
{
    for (size_t i = 0; i < g->guarded.len; i++)
        if (g->guarded.at[i].id == id)
            return &g->guarded.at[i];
    return NULL;
}

static int group_guard(struct port_guard *g, uint64_t id, const char *path, uint64_t owner)
{
    static const enum bpf_attach_type types[] = {BPF_CGROUP_INET4_BIND, BPF_CGROUP_INET6_BIND};
    void *at = NULL;
    CLEANUP(close_fd) int group = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = group < 0 ? -errno : table_make(g);
    if (rc < 0)
        return rc;
    struct stat st;
    if (fstat(group, &st) < 0)
        return -errno;
    struct guarded_cgroup w = {.id = id, .owner = owner, .group = st.st_ino, .map = map_make(sizeof *w.cell, 1, &at)};
    if (w.map < 0)
        return w.map;
    w.cell = at;
    for (size_t i = 0; rc >= 0 && i < sizeof types / sizeof *types; i++) {
        CLEANUP(close_fd) int program = program_load(g->map, w.map, owner, types[i]);
        rc = program < 0 ? program : program_put(group, program, types[i]);
    }
    struct guarded_cgroup *was = guarded_cgroup_find(g, id);
    if (rc < 0) {
        guarded_cgroup_done(&w);
    } else if (was) {
        guarded_cgroup_done(was);
        *was = w;
    } else {
        vec_push(&g->guarded, w);
    }
    return rc < 0 ? rc : 0;
}

int port_guard_put(struct port_guard *g, uint64_t id, const char *group, uint64_t owner, struct berth_err *err)
{
    (void)pthread_mutex_lock(&g->lock);
    int rc = group_guard(g, id, group, owner);
    (void)pthread_mutex_unlock(&g->lock);
    bool missing = rc == -EINVAL || rc == -ENOSYS || rc == -EPERM || rc == -EACCES;
    return rc == 0 ? 0
                   : err_set(err, missing ? EOPNOTSUPP : -rc, "cannot protect the ports of apps from %s: %s", group,
                             strerror(-rc));
}

static void on_holder(void *ctx, uint16_t port, uint64_t group)
{
    struct port_guard *g = ctx;
    uint64_t owner = g->owner[port];
    for (size_t i = 0; owner && i < g->guarded.len; i++) {
        struct guarded_cgroup *w = &g->guarded.at[i];
        if (w->group == group && w->owner != owner)
            w->found = port;
    }
}

void port_guard_poll(struct port_guard *g)
{
    (void)pthread_mutex_lock(&g->lock);
    for (size_t i = 0; i < g->guarded.len; i++)
        g->guarded.at[i].found = 0;
    if (g->owner && g->reserved.len)
        (void)port_holders_each(on_holder, g);
    (void)pthread_mutex_unlock(&g->lock);
}

bool port_guard_claimed(struct port_guard *g, uint64_t id, uint16_t *ret)
{
    bool claimed = false;
    (void)pthread_mutex_lock(&g->lock);
    struct guarded_cgroup *w = guarded_cgroup_find(g, id);
    uint64_t count = w ? __atomic_load_n(&w->cell->count, __ATOMIC_RELAXED) : 0;
    if (w && count != w->seen) {
        w->seen = count;
        *ret = (uint16_t)__atomic_load_n(&w->cell->port, __ATOMIC_RELAXED);
        claimed = true;
    } else if (w && w->found && w->found != w->reported) {
        *ret = w->found;
        w->reported = w->found;
        claimed = true;
    }
    (void)pthread_mutex_unlock(&g->lock);
    return claimed;
}

void port_guard_drop(struct port_guard *g, uint64_t id)
{
    (void)pthread_mutex_lock(&g->lock);
    for (size_t i = g->reserved.len; i-- > 0;)
        if (g->reserved.at[i].id == id) {
            ports_set(g, &g->reserved.at[i], 0);
            g->reserved.at[i] = g->reserved.at[--g->reserved.len];
        }
    for (size_t i = 0; i < g->reserved.len; i++) /* ports shared with other instances of the owner stay reserved */
        ports_set(g, &g->reserved.at[i], g->reserved.at[i].owner);
    struct guarded_cgroup *w = guarded_cgroup_find(g, id);
    if (w) {
        guarded_cgroup_done(w);
        *w = g->guarded.at[--g->guarded.len];
    }
    (void)pthread_mutex_unlock(&g->lock);
}

/* ---- lifetime --------------------------------------------------------------------------------------------------- */

struct port_guard *port_guard_new(void)
{
    struct port_guard *g = mem_zalloc(sizeof *g);
    g->map = -1;
    (void)pthread_mutex_init(&g->lock, NULL);
    return g;
}

void port_guard_free(struct port_guard *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->guarded.len; i++)
        guarded_cgroup_done(&g->guarded.at[i]);
    vec_done(&g->guarded);
    vec_done(&g->reserved);
    if (g->owner)
        (void)munmap(g->owner, sizeof *g->owner * PORTS);
    close_fd_cleanup(&g->map);
    (void)pthread_mutex_destroy(&g->lock);
    mem_free(g);
}
