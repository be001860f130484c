/* main.c - berth-agent: parses the command line; joins a cluster or runs the agent. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "agent/agent.h"
#include "agent/net/identity.h"
#include "agent/net/net_sandbox.h"
#include "base/mem.h"
#include "base/str.h"
#include "berth.h"
#include "machine/cgroup/hugepage.h"
#include "machine/gpu/probe_gpu.h"
#include "machine/probe/probe.h"
#include "wire/text/document.h"
#include "wire/text/quantity.h"

enum { EXIT_USAGE = 2, EXIT_SUPERSEDED = 3 };

/* Raises the soft limit of open files to the hard limit: each instance needs several descriptors. */
static void descriptors_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void gpus_add(const char *library, json_t *probed)
{
    CLEANUP(nvml_snapshot) struct nvml_snapshot look;
    struct nvml *nvml = nvml_new(library);
    nvml_snapshot_take(nvml, &look);
    CLEANUP(json) json_t *gpus = probe_gpus(&look);
    (void)json_object_update(probed, gpus);
    if (*look.trouble)
        (void)fprintf(stderr, "berth-agent: %s; its GPUs are not available until this is fixed\n", look.trouble);
    nvml_free(nvml);
}

static int join(const struct agent_options *options, struct berth_err *err)
{
    const struct probe_config config = {.root = "",
                                        .plugins = options->plugins,
                                        .disk = options->state,
                                        .reserve = options->reserve,
                                        .bandwidth_bytes = options->bandwidth_bytes};
    (void)mkdir(options->state, 0700); /* its file system is probed as the node's disk; a failure is reported below */
    CLEANUP(json) json_t *probed = NULL;
    CLEANUP(mem) char *node = NULL;
    int rc = probe_machine(&config, &probed, err);
    if (rc == 0)
        gpus_add(options->nvml, probed);
    if (rc == 0 && options->address) { /* marked as given, so that it replaces the address of an earlier join */
        (void)json_object_set_new(probed, "address", json_string(options->address));
        (void)json_object_set_new(probed, "address_given", json_true());
    }
    if (rc == 0)
        rc = identity_join(options, probed, &node, err);
    if (rc == 0)
        (void)printf("This machine joined as node %s. Start it with 'berth-agent%s%s'.\n", node,
                     strcmp(options->state, "/var/lib/berth-agent") ? " --state " : "",
                     strcmp(options->state, "/var/lib/berth-agent") ? options->state : "");
    return rc;
}

/* berth-agent hugepages SIZE COUNT: sets the number of huge pages; used by the scripts of OpTasks. Prints the resulting
 * number. */
static int hugepages_verb(int argc, char **argv)
{
    struct berth_err err = {0};
    int64_t page_bytes = 0, count = -1, got = 0;
    if (argc != 4 || quantity_parse_text("memory", argv[2], &page_bytes, NULL) < 0 || page_bytes <= 0 ||
        !str_parse_i64(argv[3], &count) || count < 0) {
        (void)fprintf(stderr,
                      "berth-agent: hugepages needs a size and a number of pages, such as 'hugepages 2Mi 512'\n");
        return EXIT_USAGE;
    }
    if (hugepages_set("", page_bytes, count, &got, &err) < 0) {
        (void)fprintf(stderr, "berth-agent: %s\n", err.text);
        return EXIT_FAILURE;
    }
    (void)printf("%" PRId64 "\n", got);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct agent_options options;
    struct berth_err err = {0};
    if (argc > 1 && strcmp(argv[1], "hugepages") == 0)
        return hugepages_verb(argc, argv);
    if (argc > 1 && strcmp(argv[1], "network") == 0)
        return net_sandbox_main(argc, argv);
    if (agent_options_read(argc, argv, &options, &err) < 0) {
        (void)fprintf(stderr, "berth-agent: %s\n", err.text);
        return EXIT_USAGE;
    }
    if (options.help)
        agent_options_help(stdout);
    else if (options.version)
        (void)printf("berth-agent %s\n", berth_version());
    if (options.help || options.version)
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    (void)umask(077);
    (void)signal(SIGPIPE, SIG_IGN);
    descriptors_raise();
    const struct log log = {.out = stderr, .level = options.log_level};
    int rc = strcmp(options.verb, "join") == 0 ? join(&options, &err) : agent_run(&options, stdout, &log, &err);
    if (rc < 0)
        (void)fprintf(stderr, "berth-agent: %s\n", err.text);
    return rc == 0 ? EXIT_SUCCESS : rc == -EALREADY ? EXIT_SUPERSEDED : EXIT_FAILURE;
}
