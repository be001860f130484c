/* script.h - a batch script as a job: its text travels with it, its #BERTH and #SBATCH lines say what it needs.
 *
 * Such lines count up to the first line that is neither empty nor a comment. A #BERTH line takes the options of `berth submit`,
 * an #SBATCH line those of Slurm (cli/slurm/sbatch.h). The script is run by its own #! line.
 */
#pragma once

#include <stdbool.h>

#include "cli/lib/cli.h"
#include "cli/slurm/sbatch.h"

/* Where a script lies for its job. */
#define SCRIPT_FOLDER "/run/berth-job"
enum { SCRIPT_BYTES_MAX = 128 * 1024 };

/* A file here that begins with "#!"? */
bool script_is(const char *path);

/* Reads it and appends its document to `list`. Returns an enum exit_code, told; lines that are not understood are warned of. */
int script_document(const struct cli *cli, const char *path, const char *const *arguments, size_t arguments_len,
                    json_t *list);
/* The same with Slurm options from a command line, which win over the script's; NULL: none. */
int script_document_slurm(const struct cli *cli, const char *path, const struct slurm_values *over,
                          const char *const *arguments, size_t arguments_len, json_t *list);
/* From text; `name` stands in what is told. */
int script_parse(const struct cli *cli, const char *name, const char *text, const struct slurm_values *over,
                 json_t *ret);

/* Words of a line as a shell would see them: quotes, backslashes, a comment at the end. -1: a quote is open. They point into
 * `line`, which is changed. */
int script_words(char *line, char **words, int words_max);

/* "ALL", "NONE", "A,B=x,ALL": adds to the document's env. `environment` ends with NULL. */
int script_export(const struct cli *cli, const char *text, const char *const *environment, json_t *document);
