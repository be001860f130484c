/* script.h - a batch script as a job: the script's text is sent with the job; #BERTH and #SBATCH lines give its
 * options.
 *
 * Option lines count up to the first line that is neither empty nor a comment. A #BERTH line takes the options of
 * `berth submit`, an #SBATCH line those of Slurm (cli/slurm/sbatch.h). The script's own #! line selects the
 * interpreter.
 */
#pragma once

#include <stdbool.h>

#include "cli/lib/cli.h"
#include "cli/slurm/sbatch.h"

/* The folder of the script within the job. */
#define SCRIPT_FOLDER "/run/berth-job"
enum { SCRIPT_BYTES_MAX = 128 * 1024 };

/* Returns whether `path` is a local file that begins with "#!". */
bool script_is(const char *path);

/* Reads a script and appends its document to `list`. Returns an enum exit_code and prints errors; unknown options cause
 * a warning. */
int script_document(const struct cli *cli, const char *path, const char *const *arguments, size_t arguments_len,
                    json_t *list);
/* Like script_document, with Slurm options from a command line, which override the script's; NULL: none. */
int script_document_slurm(const struct cli *cli, const char *path, const struct slurm_values *over,
                          const char *const *arguments, size_t arguments_len, json_t *list);
/* Parses the text of a script; `name` is used in messages. */
int script_parse(const struct cli *cli, const char *name, const char *text, const struct slurm_values *over,
                 json_t *ret);

/* Splits a line into words as a shell does: quotes, backslashes, a trailing comment. Returns -1 for an unclosed quote.
 * The words point into `line`, which is modified. */
int script_words(char *line, char **words, int words_max);

/* Adds variables to the document's env: "ALL", "NONE", "A,B=x,ALL". `environment` ends with NULL. */
int script_export(const struct cli *cli, const char *text, const char *const *environment, json_t *document);
