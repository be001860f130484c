/* sbatch.h - Slurm's options, read by a table and turned into the keys of a job.
 *
 * Pure but for the clock: nothing is printed. What has no counterpart becomes a note, a sentence for the user.
 *
 * To add an option: a field, a row in sbatch.c, and, unless it is only noted there, a line in the function of its kind.
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

/* The rows, for commands and help. */
enum { SLURM_OPTIONS = 53 };
extern const struct option slurm_options[SLURM_OPTIONS];

/* Reads the option at words[0] with its value; *ret_taken words are used up, also of one that is not understood: -EINVAL. */
int slurm_option(char *const *words, int len, struct slurm_values *values, int *ret_taken, struct berth_err *err);
/* What `over` has wins. */
void slurm_overlay(struct slurm_values *to, const struct slurm_values *over);

struct slurm_script {
    const char *name; /* of the script, for the job's name; NULL: none */
    bool srun;        /* it calls srun, so that it means every task */
};
/* Adds keys to a document, and sentences to `notes`. -EINVAL: a value makes no sense. */
int slurm_make(const struct slurm_values *v, const struct slurm_script *script, json_t *ret, json_t *notes,
               struct berth_err *err);
