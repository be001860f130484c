/* routes_work.c - the routes of workloads (apps, jobs, vms), crons and secrets. */
#include <string.h>

#include "control/api/routes.h"
#include "control/explain/start_advice.h"
#include "control/job/cron.h"
#include "control/job/job.h"
#include "control/kind/secret.h"
#include "control/kind/work.h"

enum { WORK_BODY_MAX = 512 * 1024, SETTINGS_BODY_MAX = 128 * 1024, VERB_BODY_MAX = 4096 };

COLLECTION(app)
CRUD_VERB(job, list)
CRUD_VERB(job, get)
CRUD_VERB(job, replace)
CRUD_VERB(job, patch)
CRUD_VERB(job, delete)
COLLECTION(vm)
COLLECTION(cron)
CRUD_VERB(secret, list)
CRUD_VERB(secret, get)
CRUD_VERB(secret, create)
CRUD_VERB(secret, replace)
CRUD_VERB(secret, delete)

#define EDIT(function, crud, verb, edit, arg)                                                                          \
    static int function(struct request *c)                                                                             \
    {                                                                                                                  \
        return work_edit(c, &(crud), verb, edit, arg);                                                                 \
    }

EDIT(app_start, app_crud, "start", work_start, NULL)
EDIT(app_stop, app_crud, "stop", work_stop, NULL)
EDIT(app_restart, app_crud, "restart", work_restart, NULL)
EDIT(app_scale, app_crud, "scale", work_scale, NULL)
EDIT(app_put_settings, app_crud, "settings", work_put_map, "settings")
EDIT(app_patch_settings, app_crud, "settings", work_patch_map, "settings")
EDIT(app_put_install, app_crud, "install", work_put_map, "install")
EDIT(app_patch_install, app_crud, "install", work_patch_map, "install")
EDIT(vm_start, vm_crud, "start", work_start, NULL)
EDIT(vm_stop, vm_crud, "stop", work_stop, NULL)
EDIT(vm_restart, vm_crud, "restart", work_restart, NULL)

/* Submits a job; a dry run may include a forecast of its start. */
static int job_draft(struct request *c)
{
    const char *forecast = request_query(c, "forecast");
    int rc = job_submit(c);
    return rc == 0 && c->dry_run && forecast && strcmp(forecast, "false") != 0 ? start_advice_draft(c) : rc;
}

static const char filters[] = "limit,after,watch,order,owner,group,state", owned[] = "limit,after,watch,owner,group";

#define READ PERMIT_READ, 0
#define SUBMIT PERMIT_SUBMIT, WORK_BODY_MAX
#define CHANGE PERMIT_MANAGE, WORK_BODY_MAX
#define DELETE PERMIT_MANAGE, 0
#define VERB PERMIT_MANAGE, VERB_BODY_MAX
#define SETTINGS PERMIT_MANAGE, SETTINGS_BODY_MAX
const struct route work_routes[] = {
    ROUTE("GET", "/v1/apps", READ, ROUTE_STREAMS, app_list, "List apps", .query = filters),
    ROUTE("POST", "/v1/apps", SUBMIT, ROUTE_CHANGES, app_create, "Add an app"),
    ROUTE("GET", "/v1/apps/{id}", READ, 0, app_get, "Read an app with its status"),
    ROUTE("PUT", "/v1/apps/{id}", SUBMIT, ROUTE_CHANGES, app_replace, "Add or replace an app"),
    ROUTE("PATCH", "/v1/apps/{id}", CHANGE, ROUTE_CHANGES, app_patch, "Change some keys of an app"),
    ROUTE("DELETE", "/v1/apps/{id}", DELETE, ROUTE_CHANGES, app_delete, "Remove an app"),
    ROUTE("POST", "/v1/apps/{id}/start", VERB, ROUTE_CHANGES, app_start, "Start a stopped app"),
    ROUTE("POST", "/v1/apps/{id}/stop", VERB, ROUTE_CHANGES, app_stop, "Stop an app and keep its specification"),
    ROUTE("POST", "/v1/apps/{id}/restart", VERB, ROUTE_CHANGES, app_restart, "Restart an app's instances"),
    ROUTE("POST", "/v1/apps/{id}/scale", VERB, ROUTE_CHANGES, app_scale, "Set the number of replicas",
          .body = &scale_keys),
    ROUTE("GET", "/v1/apps/{id}/settings", READ, 0, app_get_settings, "Read an app's settings, with defaults"),
    ROUTE("PUT", "/v1/apps/{id}/settings", SETTINGS, ROUTE_CHANGES, app_put_settings, "Replace an app's settings"),
    ROUTE("PATCH", "/v1/apps/{id}/settings", SETTINGS, ROUTE_CHANGES, app_patch_settings,
          "Change some of an app's settings"),
    ROUTE("GET", "/v1/apps/{id}/install", DELETE, 0, app_get_install, "Read an app's install configuration"),
    ROUTE("PUT", "/v1/apps/{id}/install", SETTINGS, ROUTE_CHANGES, app_put_install,
          "Replace an app's install configuration"),
    ROUTE("PATCH", "/v1/apps/{id}/install", SETTINGS, ROUTE_CHANGES, app_patch_install,
          "Change some of an app's install configuration"),

    ROUTE("GET", "/v1/jobs", READ, ROUTE_STREAMS, job_list, "List jobs", .query = filters),
    ROUTE("POST", "/v1/jobs", SUBMIT, ROUTE_CHANGES, job_draft, "Submit a job, or a set of roles", .query = "forecast"),
    ROUTE("GET", "/v1/jobs/{id}", READ, 0, job_get, "Read a job with its status"),
    ROUTE("PUT", "/v1/jobs/{id}", CHANGE, ROUTE_CHANGES, job_replace, "Replace the specification of a job",
          .query = "stop"),
    ROUTE("PATCH", "/v1/jobs/{id}", CHANGE, ROUTE_CHANGES, job_patch, "Change some keys of a job", .query = "stop"),
    ROUTE("DELETE", "/v1/jobs/{id}", DELETE, ROUTE_CHANGES, job_delete, "Remove a job and its records"),
    ROUTE("POST", "/v1/jobs/{id}/hold", VERB, ROUTE_CHANGES, job_hold_verb, "Hold a job; with stop, also a running one",
          .query = "stop"),
    ROUTE("POST", "/v1/jobs/{id}/release", VERB, ROUTE_CHANGES, job_release_verb, "Release a held job"),
    ROUTE("POST", "/v1/jobs/{id}/cancel", VERB, ROUTE_CHANGES, job_cancel_verb, "Cancel a job and keep its record"),
    ROUTE("POST", "/v1/jobs/{id}/requeue", VERB, ROUTE_CHANGES, job_requeue_verb, "Run a job again from the beginning"),

    ROUTE("GET", "/v1/vms", READ, ROUTE_STREAMS, vm_list, "List virtual machines", .query = filters),
    ROUTE("POST", "/v1/vms", SUBMIT, ROUTE_CHANGES, vm_create, "Add a virtual machine"),
    ROUTE("GET", "/v1/vms/{id}", READ, 0, vm_get, "Read a virtual machine with its status"),
    ROUTE("PUT", "/v1/vms/{id}", SUBMIT, ROUTE_CHANGES, vm_replace, "Add or replace a virtual machine"),
    ROUTE("PATCH", "/v1/vms/{id}", CHANGE, ROUTE_CHANGES, vm_patch, "Change some keys of a virtual machine"),
    ROUTE("DELETE", "/v1/vms/{id}", DELETE, ROUTE_CHANGES, vm_delete, "Remove a virtual machine"),
    ROUTE("POST", "/v1/vms/{id}/start", VERB, ROUTE_CHANGES, vm_start, "Start a stopped virtual machine"),
    ROUTE("POST", "/v1/vms/{id}/stop", VERB, ROUTE_CHANGES, vm_stop, "Stop a virtual machine"),
    ROUTE("POST", "/v1/vms/{id}/restart", VERB, ROUTE_CHANGES, vm_restart, "Restart a virtual machine"),

    ROUTE("GET", "/v1/crons", READ, ROUTE_STREAMS, cron_list, "List schedules of jobs", .query = owned),
    ROUTE("POST", "/v1/crons", SUBMIT, ROUTE_CHANGES, cron_create, "Add a schedule"),
    ROUTE("GET", "/v1/crons/{id}", READ, 0, cron_get, "Read a schedule"),
    ROUTE("PUT", "/v1/crons/{id}", SUBMIT, ROUTE_CHANGES, cron_replace, "Add or replace a schedule"),
    ROUTE("PATCH", "/v1/crons/{id}", CHANGE, ROUTE_CHANGES, cron_patch, "Change some keys of a schedule"),
    ROUTE("DELETE", "/v1/crons/{id}", DELETE, ROUTE_CHANGES, cron_delete, "Remove a schedule; its jobs stay"),

    ROUTE("GET", "/v1/secrets", READ, ROUTE_STREAMS, secret_list, "List secrets without their contents",
          .query = owned),
    ROUTE("POST", "/v1/secrets", SUBMIT, ROUTE_CHANGES, secret_create, "Add a secret"),
    ROUTE("GET", "/v1/secrets/{id}", READ, 0, secret_get, "Read a secret's keys and their sizes"),
    ROUTE("PUT", "/v1/secrets/{id}", SUBMIT, ROUTE_CHANGES, secret_replace, "Add or replace a secret"),
    ROUTE("DELETE", "/v1/secrets/{id}", DELETE, ROUTE_CHANGES, secret_delete, "Remove an unused secret"),
};
const size_t work_routes_len = sizeof work_routes / sizeof *work_routes;
