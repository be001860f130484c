/* object.h - one object on a server: read it, do something with it, say what was done.
 *
 * Functions return an enum exit_code; what failed has been told, and of an id that is not there the nearest that is.
 */
#pragma once

#include "cli/lib/api.h"
#include "cli/show/collection.h"

/* Appends "/v1/apps/ID". */
void object_path(struct str *path, const struct target *target);
/* *ret is a new reference. */
int object_get(struct api *a, const struct target *target, json_t **ret);
/* The same, but tells nothing: what failed is in *ret_trouble. */
int object_try(struct api *a, const struct target *target, json_t **ret, struct api_trouble *ret_trouble);

struct object_act {
    const char *method;
    const char *sub;    /* "start"; NULL: the object itself */
    const char *query;  /* "force=true"; NULL: none */
    const json_t *body; /* NULL: none */
    const char *done;   /* "started", printed after KIND/ID; NULL: print nothing */
    bool dry_run;
};
/* ret_answer: a new reference or NULL where the answer was empty; may be NULL. */
int object_do(struct api *a, const struct target *target, const struct object_act *act, json_t **ret_answer);

/* "app/photos.alice stopped", with " (dry run)" if it was one. */
void object_tell(const struct cli *cli, const char *kind, const char *id, const char *done, bool dry_run);

/* Tells what went wrong with a request for this target; of one that is not there also what is near. Returns the code. */
int object_trouble(struct api *a, const struct target *target, const struct api_trouble *trouble);

/* Of an id that is not there: hints at the nearest one of the kind that is. Asks the server. */
void object_near(struct api *a, const struct target *target);

/* What every verb that changes something takes. */
struct change_values {
    bool dry_run;
};
#define DRY_RUN_ROW(values, field)                                                                                     \
    OPTION_FLAG_ROW("dry-run", 0, values, field, "Check everything and say what would happen, but change nothing.")
extern const struct option change_options[];
extern const size_t change_options_len;

/* "KEY=VALUE" words into an object: VALUE is read as YAML reads it (5 is a number, true a truth, "5" a text, null takes
 * the key away), KEY may have dots for keys within. Told on failure. */
int pairs_parse(const struct cli *cli, const char *const *words, size_t len, json_t *ret);
