/* sbatch_options.c - the table of Slurm's options and its parser. */
#include <errno.h>

#include "cli/slurm/sbatch.h"

#define TEXT(name, letter, field, value, text) OPTION_TEXT_ROW(name, letter, slurm_values, field, value, text)
#define FLAG(name, letter, field, text) OPTION_FLAG_ROW(name, letter, slurm_values, field, text)
const struct option slurm_options[SLURM_OPTIONS] = {
    TEXT("job-name", 'J', job_name, "NAME", "Name of the job."),
    TEXT("partition", 'p', partition, "QUEUE", "Queue of the job."),
    TEXT("time", 't', time, "TIME", "Time limit: MINUTES, MM:SS, HH:MM:SS, D-HH, D-HH:MM:SS, or 30m, 2h."),
    TEXT("time-min", 0, time_min, "TIME", "Minimum run time; used as the job's estimate."),
    TEXT("nodes", 'N', nodes, "N", "Number of nodes, or MIN-MAX."),
    TEXT("ntasks", 'n', ntasks, "N", "Number of tasks; each runs the script."),
    TEXT("ntasks-per-node", 0, ntasks_per_node, "N", "Maximum number of tasks on one node."),
    TEXT("cpus-per-task", 'c', cpus_per_task, "N", "Cores per task."),
    TEXT("mem", 0, mem, "SIZE", "Memory per node: 4G; without a unit in MiB."),
    TEXT("mem-per-cpu", 0, mem_per_cpu, "SIZE", "Memory per core."),
    TEXT("mem-per-gpu", 0, mem_per_gpu, "SIZE", "Memory per GPU."),
    TEXT("gres", 0, gres, "LIST", "GPUs per node: gpu:N or gpu:MODEL:N."),
    TEXT("gpus", 'G', gpus, "[MODEL:]N", "Total GPUs of all tasks."),
    TEXT("gpus-per-node", 0, gpus_per_node, "[MODEL:]N", "GPUs per node."),
    TEXT("gpus-per-task", 0, gpus_per_task, "[MODEL:]N", "GPUs per task."),
    TEXT("array", 'a', array, "RANGE", "Array of tasks: 0-99, 0-99:2, 0-99%10."),
    TEXT("dependency", 'd', dependency, "LIST", "Dependencies: afterok:17:18,afterany:19,singleton."),
    TEXT("begin", 0, begin, "WHEN", "Earliest start: now+1hour, 18:30, 2026-03-01T12:00."),
    TEXT("deadline", 0, deadline, "WHEN", "Latest end of the job."),
    TEXT("export", 0, exports, "NAMES",
         "Environment variables to pass: ALL, NONE (default), or names with or without values."),
    TEXT("chdir", 'D', chdir, "PATH", "Working directory."),
    TEXT("account", 'A', account, "NAME", "Stored as an attribute of the job."),
    TEXT("qos", 'q', qos, "NAME", "Stored as an attribute of the job."),
    TEXT("comment", 0, comment, "TEXT", "Stored as an attribute of the job."),
    TEXT("nice", 0, nice, "N", "Lower the urgency of the job by N."),
    TEXT("priority", 0, priority, "N", "Priority of the job."),
    TEXT("signal", 0, signal, "SIGNAL[@SECONDS]", "Signal to send before the job is stopped."),
    TEXT("mail-user", 0, mail_user, "ADDRESS", "Mail address to notify."),
    TEXT("mail-type", 0, mail_type, "LIST", "Events to notify: BEGIN, END, FAIL, REQUEUE, ALL, NONE."),
    TEXT("nodelist", 'w', nodelist, "NODES", "Run only on these nodes."),
    TEXT("exclude", 'x', exclude, "NODES", "Do not run on these nodes."),
    TEXT("constraint", 'C', constraint, "LABELS", "Run only on nodes with these labels: a&b, a|b, KEY=VALUE."),
    TEXT("output", 'o', output, "FILE", "Accepted but ignored: Berth keeps the output, see 'berth logs'."),
    TEXT("error", 'e', error, "FILE", "Accepted but ignored."),
    TEXT("input", 'i', input, "FILE", "Accepted but ignored."),
    TEXT("wrap", 0, wrap, "COMMAND", "Run this shell command instead of a script."),
    FLAG("hold", 'H', hold, "Submit the job on hold; 'berth job release' lets it start."),
    FLAG("requeue", 0, requeue, "Run the job again after a failure or preemption."),
    FLAG("no-requeue", 0, no_requeue, "Never run the job again."),
    FLAG("exclusive", 0, exclusive, "Accepted but ignored."),
    FLAG("wait", 'W', wait, "Wait until the job ends."),
    FLAG("parsable", 0, parsable, "Print only the job number."),
    FLAG("test-only", 0, test_only, "Validate the job, but do not submit it."),
    FLAG("quiet", 'Q', quiet, "Accepted but ignored."),
    FLAG("verbose", 'v', verbose, "Accepted but ignored."),
    FLAG("overcommit", 'O', overcommit, "Accepted but ignored."),
    FLAG("pty", 0, pty, "With srun: use a terminal."),
    TEXT("reservation", 0, reservation, "NAME", "Accepted but ignored: windows admit their users automatically."),
    TEXT("licenses", 'L', licenses, "LIST", "Accepted but ignored."),
    TEXT("tmp", 0, tmp, "SIZE", "Accepted but ignored."),
    TEXT("open-mode", 0, open_mode, "WORD", "Accepted but ignored."),
    TEXT("distribution", 'm', distribution, "WORD", "Accepted but ignored."),
    TEXT("cpu-bind", 0, cpu_bind, "WORD", "Accepted but ignored."),
};
#undef TEXT
#undef FLAG

/* ---- reading ---------------------------------------------------------------------------------------------------- */

int slurm_option(char *const *words, int len, struct slurm_values *values, int *ret_taken, struct berth_err *err)
{
    struct option_set set = {slurm_options, SLURM_OPTIONS, values};
    int one = 0, rc = -EINVAL;

    *ret_taken = 1;
    if (words[0][0] != '-' || !words[0][1])
        return err_set(err, EINVAL, "not an option");
    /* Tries the option with its value in the same word first, then in the next word. */
    if (options_parse_leading(&set, 1, 1, words, &one, err) == 0)
        return 0;
    if (len > 1 && words[1][0] != '-') {
        struct berth_err other;
        rc = options_parse_leading(&set, 1, 2, words, &one, &other);
        *ret_taken = 2;
        if (rc == 0)
            return 0;
    }
    return -EINVAL;
}

void slurm_overlay(struct slurm_values *to, const struct slurm_values *over)
{
    for (size_t i = 0; i < SLURM_OPTIONS; i++) {
        const struct option *option = &slurm_options[i];
        const void *from = (const char *)over + option->offset;
        void *into = (char *)to + option->offset;
        if (option->kind == OPTION_FLAG)
            *(bool *)into |= *(const bool *)from;
        else if (*(const char *const *)from)
            *(const char **)into = *(const char *const *)from;
    }
}
