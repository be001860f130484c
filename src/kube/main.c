/* main.c - berth-kube: reads the command line, prepares the process, runs. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "berth.h"
#include "kube/journal/replay.h"
#include "kube/reporter/reporter.h"
#include "kube/run.h"
#include "kube/webhook/webhook.h"

enum { EXIT_USAGE = 2, PLAN_BYTES = 32 << 20 }; /* memory that plans use again and again */

/* Runs with the parsed options. */
static int run(struct kube_options *options, struct berth_err *err)
{
    if (options->help)
        kube_options_help(stdout);
    else if (options->version)
        (void)printf("berth-kube %s\n", berth_version());
    if (options->help || options->version)
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;

    (void)signal(SIGPIPE, SIG_IGN);
    const struct log log = {.out = stderr, .level = options->log_level};
    if (kube_run(options, stdout, &log, err) < 0) {
        (void)fprintf(stderr, "berth-kube: %s\n", err->text);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct kube_options options;
    struct berth_err err = {0};
    int rc = EXIT_USAGE;

    (void)umask(077);
    if (argc > 1 && strcmp(argv[1], "webhook-cert") == 0)
        return kube_webhook_cert(argc - 1, argv + 1, stdout);
    if (argc > 1 && strcmp(argv[1], "replay") == 0)
        return kube_replay_main(argc - 1, argv + 1, stdout);
    if (argc > 1 && strcmp(argv[1], "report-node") == 0)
        return kube_report_node(argc - 1, argv + 1, stdout);
    mem_keep_freed(PLAN_BYTES);
    if (kube_options_read(argc, argv, &options, &err) < 0)
        (void)fprintf(stderr, "berth-kube: %s\n", err.text);
    else
        rc = run(&options, &err);
    kube_options_done(&options);
    return rc;
}
