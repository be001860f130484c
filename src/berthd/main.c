/* main.c - berthd: reads the command line, prepares the process, runs the daemon. */
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "berth.h"
#include "berthd/daemon.h"

enum { EXIT_USAGE = 2 };

/* Each of thousands of watchers needs a descriptor. */
static void descriptors_raise(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    struct daemon_options options;
    struct berth_err err = {0};

    if (daemon_options_read(argc, argv, &options, &err) < 0) {
        (void)fprintf(stderr, "berthd: %s\n", err.text);
        return EXIT_USAGE;
    }
    if (options.help)
        daemon_options_help(stdout);
    else if (options.version)
        (void)printf("berthd %s\n", berth_version());
    if (options.help || options.version)
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;

    (void)umask(077);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is handled like a full disk */
    descriptors_raise();
    if (sodium_init() < 0) {
        (void)fprintf(stderr, "berthd: libsodium cannot be initialised\n");
        return EXIT_FAILURE;
    }
    const struct log log = {.out = stderr, .level = options.log_level};
    if (daemon_run(&options, stdout, &log, &err) < 0) {
        (void)fprintf(stderr, "berthd: %s\n", err.text);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
