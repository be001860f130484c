/* watch_rows.h - `berth get --watch`: prints the rows of a table as objects change.
 *
 * The API's watch sends stored documents without status, and the status of a workload also depends on its instances.
 * Therefore one thread per stream (the kind's stream, and for workloads the instances' stream) collects the ids of
 * changed objects. The main thread reads those objects again and prints the rows that differ from the last printed
 * ones.
 */
#pragma once

#include "cli/lib/api.h"
#include "cli/lib/output.h"
#include "cli/show/listing.h"

struct row_watch {
    struct api *api;
    const struct collection *collection;
    struct listing *listing;
    enum output_form output;
    const char *owner, *group, *state, *node, *workload; /* filters; NULL: none */
};

/* Continues from a list at a revision, and across outages of the server from the last received revision. Returns an
 * enum exit_code after a permanent error only. */
int follow_run(struct row_watch *f, const json_t *items, json_int_t revision);
