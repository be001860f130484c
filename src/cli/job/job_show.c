/* job_show.c - `berth job show ID`: prints everything about a job. */
#include <string.h>

#include "base/mem.h"
#include "cli/job/forecast_text.h"
#include "cli/job/job_why.h"
#include "cli/lib/command.h"
#include "cli/lib/output.h"
#include "cli/show/collection.h"
#include "cli/show/listing.h"
#include "cli/show/object.h"
#include "cli/system/events.h"
#include "wire/text/document.h"

enum { EVENTS_SHOWN = 10, INSTANCES_SHOWN = 20 };

static void document_print(const struct cli *cli, const json_t *job)
{
    static const char *const hidden[] = {"status", "v",          "revision", "id",    "kind",
                                         "name",   "generation", "why",      "labels"};
    CLEANUP(json) json_t *plain = json_copy((json_t *)job);

    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        json_object_del(plain, hidden[i]);
    section_print(cli, "Specification");
    fields_print(cli, plain, 2);
}

static int show(struct api *a, const char *id, unsigned form)
{
    struct object_target target = {collection_find("job"), id};
    CLEANUP(json) json_t *job = NULL, *why = NULL, *instances = NULL;
    CLEANUP(str) struct str path = {0};
    struct api_error trouble = {0};

    int rc = object_get(a, &target, &job);
    if (rc != EXIT_OK)
        return rc;
    rc = job_why_get(a, id, false, &why, &trouble);
    if (rc != EXIT_OK)
        return object_error_print(a, &target, &trouble);
    str_add(&path, "/v1/instances");
    query_add(&path, "workload", id);
    rc = api_list(a, str_text(&path), INSTANCES_SHOWN + 1, &instances, NULL);
    if (rc != EXIT_OK)
        return rc;
    json_object_set(job, "why", why);
    if (view_print(a->cli, form, job))
        return EXIT_OK;
    job_why_print(a->cli, why);
    document_print(a->cli, job);
    instances_print(a->cli, "Pods", instances, INSTANCES_SHOWN);
    return events_of(a, id, EVENTS_SHOWN);
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct view_values *v = values;
    CLEANUP(api) struct api api = {0};
    int rc = api_open(&api, cli);

    for (size_t i = 0; i < operands->len && rc == EXIT_OK; i++) {
        fputs(i && v->form == VIEW_TEXT ? "\n" : "", cli->out);
        rc = show(&api, operands->at[i], v->form);
    }
    return rc;
}

const struct command job_show_command = {
    .name = "job show",
    .operands = "ID...",
    .operands_min = 1,
    .operands_max = OPERANDS_ANY,
    .summary = "Show all about a job: its queue position or progress, specification, pods and events.",
    .examples = "  berth job show 17",
    .options = view_options,
    .options_len = 1,
    .values_size = sizeof(struct view_values),
    .section = SECTION_WORK,
    .talks = true,
    .ids = "jobs",
    .run = run,
};
