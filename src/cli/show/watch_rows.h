/* watch_rows.h - `berth get --watch`: rows of a table as objects change.
 *
 * The API's watch sends stored documents, without their status, and the status of a workload also follows its instances.
 * So a thread per stream (the kind's, and of workloads the instances') collects the ids of what changed, and the main
 * thread reads those objects anew and prints the rows that differ from what was printed last.
 */
#pragma once

#include "cli/lib/api.h"
#include "cli/lib/output.h"
#include "cli/show/listing.h"

struct follow {
    struct api *api;
    const struct collection *collection;
    struct listing *listing;
    enum output_form output;
    const char *owner, *group, *state, *node, *workload; /* filters; NULL: none */
};

/* Goes on from a list as it was at a revision, and from what was seen last when the server goes and comes back; ends only when
 * something fails for good. Returns an enum exit_code. */
int follow_run(struct follow *f, const json_t *items, json_int_t revision);
