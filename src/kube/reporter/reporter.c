#include "kube/reporter/reporter.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/flag.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/client/api.h"
#include "kube/client/clock.h"
#include "kube/object/gpu.h"
#include "net/loop.h"
#include "wire/text/document.h"

#define PROGRAM "berth-kube report-node"
#define SECOND_NS INT64_C(1000000000)
#define LOOK_NS (60 * SECOND_NS)
#define WRITE_NS (3600 * SECOND_NS) /* written again, in case the labels were removed */
#define AGAIN_NS (10 * SECOND_NS)   /* after a failure */
enum { EXIT_USAGE = 2 };

struct report_options {
    const char *kubeconfig, *context, *node, *root;
    bool once, help;
};

#define AT(field) offsetof(struct report_options, field)
static const struct flag flags[] = {
    {"node",       FLAG_TEXT,   AT(node),       "NAME", 0, 0, "name of this machine's node"                        },
    {"kubeconfig", FLAG_TEXT,   AT(kubeconfig), "FILE", 0, 0,
     "default: $KUBECONFIG, then the pod's service account, then ~/.kube/config"                                   },
    {"context",    FLAG_TEXT,   AT(context),    "NAME", 0, 0, "default: the current context of the kubeconfig"     },
    {"root",       FLAG_TEXT,   AT(root),       "DIR",  0, 0,
     "folder with the machine's /proc, /sys and /usr/bin/nvidia-smi; default: /"                                   },
    {"once",       FLAG_SWITCH, AT(once),       NULL,   0, 0, "exit after labelling; otherwise repeat every minute"},
    {"help",       FLAG_SWITCH, AT(help),       NULL,   0, 0, "print this help"                                    },
};
#undef AT
enum { FLAGS = sizeof flags / sizeof *flags };

struct reporter {
    struct report_options o;
    struct log log;
    struct loop *loop;
    struct kube_config server;
    struct kube_api *api;
    struct loop_source *timer;
    char *told; /* last accepted patch; NULL: none */
    char *body; /* patch being written */
    int64_t told_ns;
    int status;
};

json_t *gpu_report_patch(const struct gpu_report *r)
{
    CLEANUP(str) struct str memory = {0}, count = {0};
    str_addf(&memory, "%lld", (long long)r->memory_mib);
    str_addf(&count, "%u", r->count);
    json_t *labels = json_pack("{s:o, s:o, s:o}", KUBE_GPU_MODEL_LABEL, *r->model ? json_string(r->model) : json_null(),
                               KUBE_GPU_MEMORY_LABEL, r->memory_mib > 0 ? json_string(memory.at) : json_null(),
                               KUBE_GPU_COUNT_LABEL, r->count ? json_string(count.at) : json_null());
    return json_pack("{s:{s:o}}", "metadata", "labels", labels);
}

static void log_event(struct reporter *r, enum log_level level, const char *event, const char *text)
{
    log_write(&r->log, kube_wall_ns(), level, event, LOG_TEXT("node", r->o.node), LOG_TEXT("text", text));
}

static void on_written(void *ctx, const struct kube_answer *answer)
{
    struct reporter *r = ctx;
    char *body = r->body;
    r->body = NULL;
    if (answer->code == 0) {
        log_event(r, LEVEL_INFO, "node.labelled", body);
        free(r->told);
        r->told = body;
        r->told_ns = loop_now_ns(r->loop);
    } else {
        log_event(r, LEVEL_ERROR, "node.trouble", answer->text);
        free(body);
        loop_timer_set(r->timer, loop_now_ns(r->loop) + AGAIN_NS);
    }
    if (!r->o.once)
        return;
    r->status = answer->code == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    loop_stop(r->loop);
}

static void poll_gpus(void *ctx)
{
    struct reporter *r = ctx;
    const struct gpu_report report = gpu_report_probe(r->o.root);
    CLEANUP(json) json_t *patch = gpu_report_patch(&report);
    CLEANUP(str) struct str path = {0};
    char *body = json_dumps(patch, JSON_COMPACT | JSON_SORT_KEYS);
    loop_timer_set(r->timer, loop_now_ns(r->loop) + LOOK_NS);
    bool same = r->told && strcmp(r->told, body) == 0 && loop_now_ns(r->loop) < r->told_ns + WRITE_NS;
    if (same || r->body) {
        free(body);
        return;
    }
    r->body = body;
    str_addf(&path, "/api/v1/nodes/%s", r->o.node);
    (void)kube_start(r->api, &(struct kube_request){.method = "PATCH",
                                                    .path = path.at,
                                                    .patch = KUBE_MERGE_PATCH,
                                                    .body = body,
                                                    .body_len = strlen(body),
                                                    .rank = KUBE_URGENT,
                                                    .harmless = true,
                                                    .done = on_written,
                                                    .ctx = r});
}

static void on_stop(void *ctx)
{
    loop_stop(((struct reporter *)ctx)->loop);
}

static void on_hang_up(void *ctx)
{
    (void)ctx;
}

static int run(struct reporter *r, struct berth_err *err)
{
    const struct kube_config_where where = {.path = r->o.kubeconfig, .context = r->o.context};
    int rc = kube_config_load(&where, &r->server, err);
    if (rc == 0)
        rc = loop_new(&r->loop, err);
    if (rc == 0)
        rc = loop_service_signals(r->loop, on_stop, on_hang_up, r, err);
    if (rc == 0)
        rc = kube_api_new(r->loop,
                          &(struct kube_api_config){.server = &r->server, .agent = "berth-kube", .connections_max = 1},
                          &r->api, err);
    if (rc == 0) {
        r->timer = loop_timer_new(r->loop, poll_gpus, r);
        loop_timer_set(r->timer, 0);
        rc = loop_run(r->loop, err);
    }
    kube_api_free(r->api);
    loop_free(r->loop);
    kube_config_done(&r->server);
    free(r->told);
    free(r->body);
    return rc;
}

static void help(FILE *to)
{
    (void)fprintf(to, "berth-kube report-node - labels a node with the GPUs of this machine.\n\n"
                      "usage: " PROGRAM " --node NAME [OPTION...]\n\n");
    flags_print(flags, FLAGS, to);
    (void)fprintf(to, "\nThe labels are " KUBE_GPU_MODEL_LABEL ", " KUBE_GPU_MEMORY_LABEL
                      " (MiB of one) and\n" KUBE_GPU_COUNT_LABEL "; they are removed if there is no GPU.\n"
                      "\nexample:\n  berth-kube report-node --node gpu-7 --once\n"
                      "\nexit codes: 0 success, 1 failure, 2 invalid command line\n");
}

int kube_report_node(int argc, char *const *argv, FILE *out)
{
    struct reporter r = {
        .o = {.root = ""          },
          .log = { .out = stderr, .level = LEVEL_INFO}
    };
    struct berth_err err = {0};
    int rc = flags_read(PROGRAM, flags, FLAGS, argc, argv, &r.o, &err);
    if (rc == 0 && r.o.help) {
        help(out);
        return fflush(out) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    if (rc == 0 && (!r.o.node || strchr(r.o.node, '/')))
        rc = err_set(&err, EINVAL, "--node is required: the name of this machine's node");
    if (rc == 0) {
        (void)signal(SIGPIPE, SIG_IGN);
        r.status = run(&r, &err) < 0 ? EXIT_FAILURE : r.status;
    } else {
        r.status = EXIT_USAGE;
    }
    if (*err.text)
        (void)fprintf(stderr, PROGRAM ": %s\n", err.text);
    return r.status;
}
