/* adopt.c - takes over what an earlier agent has left: watches running instances again, reports those that ended
 * meanwhile, removes cgroups that belong to no instance. Starts nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/agent_parts.h"
#include "agent/instance/ports.h"
#include "machine/launch/pid_namespace.h"
#include "wire/text/document.h"

static void adopt_running(struct agent_instance *r)
{
    struct node_port ports[ENDPOINTS_MAX];
    bound_ports_read(r);
    for (size_t i = 0; i < r->ports.len; i++)
        ports[i] = (struct node_port){r->ports.at[i].endpoint, r->ports.at[i].port};
    r->phase = INSTANCE_RUNNING;
    limits_adopt(r);
    node_adopt(r->agent->node, r->id, r->config,
               &(struct node_start){ports, r->ports.len, r->exclusive, r->unenforced});
    NOTE(r->agent, LEVEL_INFO, "instance.adopted", LOG_NUMBER("id", (int64_t)r->id),
         LOG_NUMBER("shim", r->launched.shim));
}

static void adopt_ended(struct agent_instance *r)
{
    struct node_outcome outcome = {.end = NODE_FAILED, .exit = -1};
    char text[LAUNCH_TEXT_MAX] = "";
    int code = -1, rc = launch_exit(r->agent->state_dir, r->id, &code, text);
    (void)cgroup_usage(r->agent->cgroups, r->group, &r->used); /* while its cgroup still exists */
    r->oom_killed = r->used.oom_kills > 0;
    if (compose_clear(r) < 0) { /* an instance is over only after its processes and mounts are gone */
        node_adopt(r->agent->node, r->id, r->config, &(struct node_start){0});
        instance_reap(r);
        return;
    }
    r->phase = INSTANCE_ENDED;
    if (rc == 0 && code >= 0) {
        outcome.end = code == 0 && !text[0] ? NODE_ENDED : NODE_FAILED;
        outcome.exit = code;
        outcome.oom_killed = outcome.end == NODE_FAILED && r->oom_killed;
    }
    outcome.text = text[0]                     ? text
                   : outcome.end == NODE_ENDED ? NULL
                   : outcome.oom_killed        ? "killed for exceeding its memory limit while the agent was not running"
                   : rc == 0 && code >= 0      ? "failed while the agent was not running"
                                               : "the machine or its shim stopped while it was running";
    node_adopt_ended(r->agent->node, r->id, &outcome);
    if (r->net.in + r->net.out > 0)
        node_total_usage(r->agent->node, r->id, "traffic", r->net.in + r->net.out);
}

/* Returns the last configuration of the instance, which may differ from the one it was started with. NULL:
 * unreadable. */
static json_t *config_find(const struct agent *a, uint64_t id)
{
    static const char *const files[] = {"changed.json", "config.json"};
    json_t *config = NULL;
    for (size_t i = 0; !config && i < sizeof files / sizeof *files; i++) {
        CLEANUP(mem) char *text = NULL;
        if (instance_dir_read(a->state_dir, id, files[i], &text, NULL) == 0)
            config = json_loads(text, 0, NULL);
    }
    return config;
}

static void adopt(void *ctx, uint64_t id)
{
    struct agent *a = ctx;
    CLEANUP(json) json_t *config = config_find(a, id);
    struct berth_err err;
    if (!config)
        config = json_object();
    struct agent_instance *r = instance_list_add(a, id, config);
    int rc = launch_find(a->state_dir, id, &r->launched, &err);
    if (rc == 0) {
        bundle_started(a->state_dir, id); /* the earlier agent may have exited before this step */
        adopt_running(r);
        return;
    }
    if (rc == -EAGAIN) {     /* a container may take a minute to start; other instances must not wait for it */
        bound_ports_read(r); /* reserves its ports meanwhile */
        node_adopt_starting(a->node, id, config);
        instance_await(r);
        return;
    }
    if (rc != -ESRCH) { /* it cannot be read: the instance must never start */
        NOTE(a, LEVEL_WARN, "instance.refused", LOG_NUMBER("id", (int64_t)id), LOG_TEXT("text", err.text));
        launch_prevent(a->state_dir, id);
    }
    adopt_ended(r);
}

/* Kills and removes a cgroup without an instance directory. */
static void sweep(void *ctx, const char *name)
{
    struct agent *a = ctx;
    char *end = NULL;
    uint64_t id = name[0] == 'i' ? strtoull(name + 1, &end, 10) : 0;
    if (!end || *end || instance_find(a, id))
        return;
    NOTE(a, LEVEL_WARN, "group.orphaned", LOG_TEXT("group", name));
    (void)cgroup_kill(a->cgroups, name);
    (void)cgroup_remove(a->cgroups, name);
}

int adopt_all(struct agent *a, struct berth_err *err)
{
    char namespaces[STATE_PATH_MAX];
    if (snprintf(namespaces, sizeof namespaces, "%s/pid-namespaces", state_dir_path(a->state_dir)) <
        (int)sizeof namespaces)
        pid_namespaces_trim(namespaces);
    int rc = instance_dirs_each(a->state_dir, adopt, a);
    if (rc < 0)
        return err_set(err, -rc, "cannot read %s/instances: %s", state_dir_path(a->state_dir), strerror(-rc));
    (void)cgroups_each(a->cgroups, sweep, a);
    for (size_t i = 0; i < a->runs.len; i++)
        if (a->runs.at[i]->phase == INSTANCE_RUNNING)
            instance_watch(a->runs.at[i]);
    return 0;
}
