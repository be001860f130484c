/* agent.c - `berth bench agent`: measures a separate node from outside, and prints the results beside the goals.
 *
 * A child process measures, and its parent cleans up, so that nothing keeps running however the measurement ends.
 */
#include "bench/agent/agent.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/lib/command.h"

enum { FOLDER_ROUNDS = 100 };

static const struct {
    const char *name;
    int (*run)(struct bench_agent *b, struct berth_err *err);
} parts[] = {
    {"latency",    bench_agent_latency   },
    {"throughput", bench_agent_throughput},
    {"idle",       bench_agent_idle      },
    {"many",       bench_agent_many      },
};

static const char *const outputs[] = {"table", "json", NULL};
enum bench_agent_output { OUTPUT_TABLE, OUTPUT_JSON };
static const char *const only[] = {"all", "latency", "throughput", "idle", "many", NULL};

struct bench_agent_values {
    const char *berthd, *agent, *save;
    unsigned only, output;
    bool quick, full;
};

static const struct option options[] = {
    OPTION_TEXT_ROW("berthd", 0, bench_agent_values, berthd, "FILE",
                    "Daemon to use. Default: berthd next to this program, or on PATH."),
    OPTION_TEXT_ROW("agent", 0, bench_agent_values, agent, "FILE",
                    "Agent to measure. Default: berth-agent next to this program, or on PATH."),
    OPTION_CHOICE_ROW("only", 0, bench_agent_values, only, only, "Run only this part."),
    OPTION_FLAG_ROW("quick", 0, bench_agent_values, quick, "Run a tenth of the instances, for a shorter time."),
    OPTION_FLAG_ROW("full", 0, bench_agent_values, full, "Run longer, for some minutes."),
    OPTION_TEXT_ROW("save", 0, bench_agent_values, save, "FILE", "Also write the JSON to this file."),
    OPTION_CHOICE_ROW("output", 'o', bench_agent_values, output, outputs, "Output format."),
};

static int parts_run(struct bench_agent *b, unsigned chosen)
{
    const struct cli *cli = b->daemon.cli;
    struct berth_err err = {0};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (chosen && strcmp(only[chosen], parts[i].name) != 0)
            continue;
        b->daemon.part = parts[i].name;
        if (cli->progress)
            fprintf(cli->err, "\r\033[KMeasuring %s", parts[i].name);
        int rc = parts[i].run(b, &err);
        bench_group_clear(b->group);
        if (cli->progress)
            fputs("\r\033[K", cli->err);
        if (rc < 0)
            return cli_fail(cli, EXIT_FAILED, "%s: %s", parts[i].name, err.text);
    }
    return EXIT_OK;
}

/* Runs in the child process. */
static _Noreturn void measure(struct bench_agent *b, const struct bench_agent_values *v, const sigset_t *mask)
{
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    int rc = parts_run(b, v->only);
    if (rc == EXIT_OK)
        rc = bench_rows_print(&b->daemon, v->save, v->output == OUTPUT_JSON);
    vec_done(&b->daemon.rows);
    (void)fflush(b->daemon.cli->out);
    (void)fflush(b->daemon.cli->err);
    _exit(rc);
}

/* Waits for the child; signals that would end this process end the child instead. */
static int child_wait(pid_t child, const sigset_t *signals)
{
    for (;;) {
        siginfo_t info;
        int status, signo = sigwaitinfo(signals, &info);
        if (signo > 0 && signo != SIGCHLD)
            (void)kill(child, SIGTERM);
        if (waitpid(child, &status, WNOHANG) == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
    }
}

/* Removes the folder. A shim writes a last record into the folder after its instance has ended, so removal may need
 * several attempts. */
static void folder_clear(const char *folder)
{
    for (int i = 0; i < FOLDER_ROUNDS && access(folder, F_OK) == 0; i++) {
        if (i)
            (void)usleep(50 * 1000);
        bench_folder_remove(folder);
    }
}

static int run_in_child(struct bench_agent *b, const struct bench_agent_values *v)
{
    const struct cli *cli = b->daemon.cli;
    sigset_t signals, mask;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGHUP);
    (void)sigaddset(&signals, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &signals, &mask);
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        measure(b, v, &mask);
    int rc = child < 0 ? cli_fail(cli, EXIT_FAILED, "cannot start a process: %s", strerror(errno))
                       : child_wait(child, &signals);
    bench_group_clear(b->group);
    folder_clear(b->daemon.folder);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    return rc;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct bench_agent_values *v = values;
    const char *temporary = getenv("TMPDIR");
    CLEANUP(str) struct str folder = {0};
    struct berth_err err;

    (void)operands;
    if (geteuid() != 0)
        return cli_fail(cli, EXIT_FAILED, "needs root, for cgroups and users");
    CLEANUP(mem) char *daemon = bench_run_find(v->berthd, "berthd", "berthd", "berthd", &err);
    if (!daemon)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    CLEANUP(mem) char *agent = bench_run_find(v->agent, "berth-agent", "agent", "agent", &err);
    if (!agent)
        return cli_fail(cli, EXIT_FAILED, "%s", err.text);
    str_addf(&folder, "%s/berth-bench-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(folder.at))
        return cli_fail(cli, EXIT_FAILED, "cannot create the folder %s: %s; set $TMPDIR to another folder", folder.at,
                        strerror(errno));
    struct bench_agent b = {
        .daemon = {.cli = cli, .program = daemon, .folder = folder.at, .full = v->full, .agents = true},
        .program = agent,
        .size = v->full    ? SIZE_FULL
                : v->quick ? SIZE_QUICK
                           : SIZE_USUAL,
    };
    (void)snprintf(b.group, sizeof b.group, "berth-bench-%d", (int)getpid());
    (void)getloadavg(&b.daemon.busy, 1);
    return run_in_child(&b, v);
}

const struct command bench_agent_command = {
    .name = "bench agent",
    .operands = "",
    .summary = "Benchmark berth-agent on this machine against the goals.",
    .text = "Starts its own berthd and berth-agent in a temporary folder ($TMPDIR) and a cgroup, "
            "runs real processes through them, and cleans up: the time from submission to exec, "
            "short jobs per second, the usage of an idle agent, a thousand instances on one agent. "
            "Needs root. Takes one or two minutes. A missed goal is not an error: the exit code is 1 "
            "only if a measurement failed.",
    .examples = "  berth bench agent --only latency\n  berth bench agent --full -o json",
    .section = SECTION_FILES,
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .values_size = sizeof(struct bench_agent_values),
    .run = run,
};
