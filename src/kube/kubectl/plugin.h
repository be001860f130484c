/* plugin.h - `kubectl berth`: explains scheduling decisions, computed locally from the objects that the user may read.
 *
 * kubectl finds the program kubectl-berth in the PATH. To add a verb: a row in plugin.c, and docs/kubernetes.md.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

enum { PLUGIN_OK, PLUGIN_FAILED, PLUGIN_USAGE }; /* exit codes */

enum { PLUGIN_WORDS_MAX = 2 };
struct plugin_options {
    const char *kubeconfig, *context, *namespace, *output, *scheduler_name, *profile; /* NULL: not given */
    bool help, version;
    const char *words[PLUGIN_WORDS_MAX]; /* the verb and its arguments */
    size_t words_len;
};
/* Parses the command line. -EINVAL with what is wrong. */
int plugin_options_read(int argc, char *const *argv, struct plugin_options *ret, struct berth_err *err);
void plugin_help(FILE *to);

/* Runs the plugin; returns the exit code. */
int plugin_run(int argc, char *const *argv, FILE *out, FILE *trouble);
