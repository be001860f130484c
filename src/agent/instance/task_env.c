#include "agent/instance/task_env.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

/* Path inside the instance; in a directory of its own, because the directories of its other files may be mounted as a
 * whole. */
#define HOSTFILE_PATH "/run/berth-gang/hostfile"

struct task_env_builder {
    const struct agent_instance *run;
    const json_t *task; /* NULL: a single task */
    struct arena *arena;
    env_adder *add;
    void *ctx;
};

static void add_number(const struct task_env_builder *a, const char *name, const json_t *value)
{
    if (json_is_integer(value))
        a->add(a->ctx, name, arena_fmt(a->arena, "%" JSON_INTEGER_FORMAT, json_integer_value(value)));
}

static void add_count(const struct task_env_builder *a, const char *name, size_t n)
{
    a->add(a->ctx, name, arena_fmt(a->arena, "%zu", n));
}

static const char *host_text(const json_t *host, const char *key)
{
    const char *text = json_string_value(json_object_get(host, key));
    return text ? text : "";
}

/* Returns the entry of this node in the list of hosts. */
static const json_t *own_host(const json_t *task)
{
    return json_array_get(json_object_get(task, "hosts"),
                          (size_t)json_integer_value(json_object_get(task, "node_rank")));
}

static const struct {
    const char *name, *key;
    bool slurm;
} numbers[] = {
    {"RANK",                  "rank",       false},
    {"WORLD_SIZE",            "size",       false},
    {"LOCAL_RANK",            "local_rank", false},
    {"NODE_RANK",             "node_rank",  false},
    {"GROUP_RANK",            "node_rank",  false},
    {"MASTER_PORT",           "port",       false},
    {"BERTH_ARRAY_INDEX",     "index",      false},
    {"BERTH_ARRAY_FIRST",     "first",      false},
    {"BERTH_ARRAY_LAST",      "last",       false},
    {"BERTH_ARRAY_STEP",      "step",       false},
    {"SLURM_PROCID",          "rank",       true },
    {"SLURM_NTASKS",          "size",       true },
    {"SLURM_NPROCS",          "size",       true },
    {"SLURM_LOCALID",         "local_rank", true },
    {"SLURM_NODEID",          "node_rank",  true },
    {"SLURM_ARRAY_TASK_ID",   "index",      true },
    {"SLURM_ARRAY_TASK_MIN",  "first",      true },
    {"SLURM_ARRAY_TASK_MAX",  "last",       true },
    {"SLURM_ARRAY_TASK_STEP", "step",       true },
};

static const char *node_list(const struct task_env_builder *a, const json_t *hosts)
{
    CLEANUP(str) struct str list = {0};
    for (size_t i = 0; i < json_array_size(hosts); i++)
        str_addf(&list, "%s%s", i ? "," : "", host_text(json_array_get(hosts, i), "node"));
    return arena_strdup(a->arena, str_text(&list));
}

/* Adds Slurm's variables. A single task is task 0 of 1, as scripts for Slurm expect. */
static void slurm_add(const struct task_env_builder *a, const char *job)
{
    const json_t *hosts = json_object_get(a->task, "hosts");
    const char *node = a->run->agent->identity.node;
    size_t nodes = json_array_size(hosts);
    a->add(a->ctx, "SLURM_JOB_ID", job);
    a->add(a->ctx, "SLURM_JOBID", job);
    a->add(a->ctx, "SLURMD_NODENAME", node);
    add_count(a, "SLURM_JOB_NUM_NODES", nodes ? nodes : 1);
    add_count(a, "SLURM_NNODES", nodes ? nodes : 1);
    a->add(a->ctx, "SLURM_JOB_NODELIST", nodes ? node_list(a, hosts) : node);
    a->add(a->ctx, "SLURM_NODELIST", nodes ? node_list(a, hosts) : node);
    if (json_object_get(a->task, "index")) {
        a->add(a->ctx, "SLURM_ARRAY_JOB_ID", job);
    }
    if (!json_object_get(a->task, "size")) {
        a->add(a->ctx, "SLURM_NTASKS", "1");
        a->add(a->ctx, "SLURM_PROCID", "0");
    }
    if (!json_object_get(a->task, "local_rank"))
        a->add(a->ctx, "SLURM_LOCALID", "0");
    if (!nodes)
        a->add(a->ctx, "SLURM_NODEID", "0");
}

static void gang_add(const struct task_env_builder *a)
{
    const json_t *hosts = json_object_get(a->task, "hosts");
    if (!json_array_size(hosts))
        return;
    add_number(a, "LOCAL_WORLD_SIZE", json_object_get(own_host(a->task), "slots"));
    add_count(a, "BERTH_NODES", json_array_size(hosts));
    a->add(a->ctx, "MASTER_ADDR", host_text(json_array_get(hosts, 0), "address"));
    a->add(a->ctx, "BERTH_HOSTFILE", HOSTFILE_PATH);
}

void task_env(const struct agent_instance *r, struct arena *arena, env_adder *add, void *ctx)
{
    const char *kind = json_string_value(json_object_get(r->config, "kind"));
    const char *job = json_string_value(json_object_get(r->config, "workload"));
    const char *role;
    bool slurm = json_object_get(json_object_get(r->config, "env"), "SLURM_JOB_NAME") != NULL;
    struct task_env_builder a = {r, json_object_get(r->config, "task"), arena, add, ctx};
    if (!kind || strcmp(kind, "job") != 0 || !job)
        return;
    add(ctx, "BERTH_JOB_ID", job);
    add_number(&a, "BERTH_TASK", json_object_get(r->config, "ordinal"));
    role = json_string_value(json_object_get(a.task, "role"));
    if (role)
        add(ctx, "BERTH_ROLE", role);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (slurm || !numbers[i].slurm)
            add_number(&a, numbers[i].name, json_object_get(a.task, numbers[i].key));
    gang_add(&a);
    if (slurm)
        slurm_add(&a, job);
}

int task_hostfile(struct agent_instance *r, struct arena *arena, struct launch_mount *ret, struct berth_err *err)
{
    const json_t *hosts = json_object_get(json_object_get(r->config, "task"), "hosts");
    CLEANUP(str) struct str text = {0};
    char path[STATE_PATH_MAX];
    *ret = (struct launch_mount){0};
    if (!json_array_size(hosts))
        return 0;
    for (size_t i = 0; i < json_array_size(hosts); i++) {
        const json_t *host = json_array_get(hosts, i);
        str_addf(&text, "%s slots=%" JSON_INTEGER_FORMAT "\n", host_text(host, "address"),
                 json_integer_value(json_object_get(host, "slots")));
    }
    int rc = instance_dir_write(r->agent->state_dir, r->id, "hostfile", str_text(&text), err);
    if (rc == 0)
        rc = instance_dir_path(r->agent->state_dir, r->id, "hostfile", path);
    if (rc == 0 && chmod(path, 0444) < 0) /* its user reads it, where it is mounted */
        rc = err_set(err, errno, "%s: %s", path, strerror(errno));
    if (rc == 0)
        *ret = (struct launch_mount){.source = arena_strdup(arena, path), .target = HOSTFILE_PATH, .read_only = true};
    return rc;
}
