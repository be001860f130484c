/* sbatch_options.c - the table of Slurm's options and its parser. */
#include <errno.h>

#include "cli/slurm/sbatch.h"

#define TEXT(name, letter, field, value, text) OPTION_TEXT_ROW(name, letter, slurm_values, field, value, text)
#define FLAG(name, letter, field, text) OPTION_FLAG_ROW(name, letter, slurm_values, field, text)
const struct option slurm_options[SLURM_OPTIONS] = {
    TEXT("job-name", 'J', job_name, "NAME", "What people call it."),
    TEXT("partition", 'p', partition, "QUEUE", "Where it waits."),
    TEXT("time", 't', time, "TIME", "Its limit: MINUTES, MM:SS, HH:MM:SS, D-HH, D-HH:MM:SS, or 30m, 2h."),
    TEXT("time-min", 0, time_min, "TIME", "How long it will take at least; its estimate here."),
    TEXT("nodes", 'N', nodes, "N", "On how many nodes, or MIN-MAX."),
    TEXT("ntasks", 'n', ntasks, "N", "How many tasks; each runs the script."),
    TEXT("ntasks-per-node", 0, ntasks_per_node, "N", "Tasks on one node."),
    TEXT("cpus-per-task", 'c', cpus_per_task, "N", "Cores of each task."),
    TEXT("mem", 0, mem, "SIZE", "Memory on each node: 4G; without a unit in MiB."),
    TEXT("mem-per-cpu", 0, mem_per_cpu, "SIZE", "Memory for each core."),
    TEXT("mem-per-gpu", 0, mem_per_gpu, "SIZE", "Memory for each GPU."),
    TEXT("gres", 0, gres, "LIST", "gpu:N or gpu:MODEL:N on each node."),
    TEXT("gpus", 'G', gpus, "[MODEL:]N", "GPUs of all tasks together."),
    TEXT("gpus-per-node", 0, gpus_per_node, "[MODEL:]N", "GPUs on each node."),
    TEXT("gpus-per-task", 0, gpus_per_task, "[MODEL:]N", "GPUs of each task."),
    TEXT("array", 'a', array, "RANGE", "0-99, 0-99:2, 0-99%10."),
    TEXT("dependency", 'd', dependency, "LIST", "afterok:17:18,afterany:19,singleton."),
    TEXT("begin", 0, begin, "WHEN", "Not before: now+1hour, 18:30, 2026-03-01T12:00."),
    TEXT("deadline", 0, deadline, "WHEN", "It must end by then."),
    TEXT("export", 0, exports, "NAMES", "ALL, NONE, or names with or without values; NONE if not given."),
    TEXT("chdir", 'D', chdir, "PATH", "Where it starts."),
    TEXT("account", 'A', account, "NAME", "Kept as an attribute."),
    TEXT("qos", 'q', qos, "NAME", "Kept as an attribute."),
    TEXT("comment", 0, comment, "TEXT", "Kept as an attribute."),
    TEXT("nice", 0, nice, "N", "It lets others go first; lowers its urgency."),
    TEXT("priority", 0, priority, "N", "Its priority."),
    TEXT("signal", 0, signal, "SIGNAL[@SECONDS]", "Sent before it is stopped, so that it can save its work."),
    TEXT("mail-user", 0, mail_user, "ADDRESS", "Who is told what becomes of it ..."),
    TEXT("mail-type", 0, mail_type, "LIST", "... BEGIN, END, FAIL, REQUEUE, ALL, NONE."),
    TEXT("nodelist", 'w', nodelist, "NODES", "On this node, or on nodes of these host names."),
    TEXT("exclude", 'x', exclude, "NODES", "Not on nodes of these host names."),
    TEXT("constraint", 'C', constraint, "LABELS", "Nodes with these labels: a&b, a|b, KEY=VALUE."),
    TEXT("output", 'o', output, "FILE", "Noted only: logs are kept, see 'berth logs'."),
    TEXT("error", 'e', error, "FILE", "Noted only."),
    TEXT("input", 'i', input, "FILE", "Noted only."),
    TEXT("wrap", 0, wrap, "COMMAND", "A shell command in place of a script."),
    FLAG("hold", 'H', hold, "Wait until it is released."),
    FLAG("requeue", 0, requeue, "It may run again."),
    FLAG("no-requeue", 0, no_requeue, "It runs once."),
    FLAG("exclusive", 0, exclusive, "Noted only."),
    FLAG("wait", 'W', wait, "Wait until it is over."),
    FLAG("parsable", 0, parsable, "Print the number alone."),
    FLAG("test-only", 0, test_only, "Check everything, submit nothing."),
    FLAG("quiet", 'Q', quiet, "Taken for what it is."),
    FLAG("verbose", 'v', verbose, "Taken for what it is."),
    FLAG("overcommit", 'O', overcommit, "Noted only."),
    FLAG("pty", 0, pty, "Of srun: with a terminal."),
    TEXT("reservation", 0, reservation, "NAME", "Noted only: windows let their users in by themselves."),
    TEXT("licenses", 'L', licenses, "LIST", "Noted only."),
    TEXT("tmp", 0, tmp, "SIZE", "Noted only."),
    TEXT("open-mode", 0, open_mode, "WORD", "Noted only."),
    TEXT("distribution", 'm', distribution, "WORD", "Noted only."),
    TEXT("cpu-bind", 0, cpu_bind, "WORD", "Noted only."),
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
        return err_set(err, EINVAL, "this is no option");
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
