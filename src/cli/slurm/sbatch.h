/* sbatch.h - Slurm's options, parsed by a table and converted to the keys of a job.
 *
 * Pure except for the clock: prints nothing. An option without a counterpart becomes a note, a sentence for the user.
 *
 * To add an option: a field, a row in sbatch_options.c, and, unless it only causes a note, a line in the matching
 * function of sbatch.c.
 */
#pragma once

#include <jansson.h>

#include "cli/lib/options.h"

struct slurm_values {
    const char *job_name, *nodes, *ntasks, *ntasks_per_node, *cpus_per_task, *mem, *mem_per_cpu, *mem_per_gpu, *time,
        *time_min, *partition, *account, *gres, *gpus, *gpus_per_node, *gpus_per_task, *array, *dependency, *output,
        *error, *input, *chdir, *exports, *begin, *deadline, *qos, *nice, *signal, *mail_user, *mail_type, *nodelist,
        *exclude, *constraint, *comment, *reservation, *priority, *licenses, *tmp, *open_mode, *distribution, *cpu_bind,
        *wrap;
    bool requeue, no_requeue, hold, exclusive, parsable, wait, test_only, quiet, verbose, overcommit, pty;
};

/* The option table, for parsing and help. */
enum { SLURM_OPTIONS = 53 };
extern const struct option slurm_options[SLURM_OPTIONS];

/* Parses the option at words[0] with its value. *ret_taken is the number of words used, also for an unknown option,
 * which returns -EINVAL. */
int slurm_option(char *const *words, int len, struct slurm_values *values, int *ret_taken, struct berth_err *err);
/* Copies all values that `over` has to `to`. */
void slurm_overlay(struct slurm_values *to, const struct slurm_values *over);

struct slurm_script {
    const char *name; /* of the script, as default job name; NULL: none */
    bool srun;        /* the script calls srun, so every task runs it */
};
/* Adds keys to a document, and sentences to `notes`. Returns -EINVAL for an invalid value. */
int slurm_make(const struct slurm_values *v, const struct slurm_script *script, json_t *ret, json_t *notes,
               struct berth_err *err);
