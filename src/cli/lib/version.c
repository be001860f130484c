/* version.c - `berth version`. */
#include <stdio.h>

#include "berth.h"
#include "cli/lib/command.h"

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    (void)values;
    (void)operands;
    fprintf(cli->out, "berth %s\n", berth_version());
    return EXIT_OK;
}

const struct command version_command = {
    .name = "version",
    .operands = "",
    .summary = "Print the version.",
    .section = SECTION_PROGRAM,
    .run = run,
};
