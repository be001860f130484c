/* main.c - berth-agent: reads the command line, joins or runs. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "agent/agent.h"
#include "agent/identity.h"
#include "base/mem.h"
#include "berth.h"
#include "machine/probe.h"
#include "wire/document.h"

enum { EXIT_USAGE = 2, EXIT_SUPERSEDED = 3 };

/* Instances are several descriptors each. */
static void descriptors_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int join(const struct agent_options *options, struct berth_err *err)
{
    const struct probe_config config = {
        .root = "", .plugins = options->plugins, .disk = options->state, .reserve = options->reserve};
    (void)mkdir(options->state, 0700); /* its disk is what is offered; that it cannot be made is told below */
    CLEANUP(json) json_t *probed = NULL;
    CLEANUP(mem) char *node = NULL;
    int rc = probe_machine(&config, &probed, err);
    if (rc == 0 && options->address)
        (void)json_object_set_new(probed, "address", json_string(options->address));
    if (rc == 0)
        rc = identity_join(options, probed, &node, err);
    if (rc == 0)
        (void)printf("This machine is node %s now. 'berth-agent%s%s' runs it.\n", node,
                     strcmp(options->state, "/var/lib/berth-agent") ? " --state " : "",
                     strcmp(options->state, "/var/lib/berth-agent") ? options->state : "");
    return rc;
}

int main(int argc, char **argv)
{
    struct agent_options options;
    struct berth_err err = {0};
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
