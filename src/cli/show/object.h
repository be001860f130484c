/* object.h - reads or changes one object on a server and prints the result.
 *
 * The functions return an enum exit_code and print errors. For an unknown id they also suggest the nearest existing id.
 */
#pragma once

#include "cli/lib/api.h"
#include "cli/show/collection.h"

/* Appends "/v1/apps/ID". */
void object_path(struct str *path, const struct object_target *target);
/* *ret is a new reference. */
int object_get(struct api *a, const struct object_target *target, json_t **ret);
/* Like object_get, but prints nothing: the error is in *ret_trouble. */
int object_try(struct api *a, const struct object_target *target, json_t **ret, struct api_error *ret_trouble);

struct object_act {
    const char *method;
    const char *sub;    /* "start"; NULL: the object itself */
    const char *query;  /* "force=true"; NULL: none */
    const json_t *body; /* NULL: none */
    const char *done;   /* "started", printed after KIND/ID; NULL: prints nothing */
    bool dry_run;
};
/* Sends the request. ret_answer: a new reference, or NULL for an empty answer; may be NULL. */
int object_do(struct api *a, const struct object_target *target, const struct object_act *act, json_t **ret_answer);

/* Prints "app/photos.alice stopped", with " (dry run)" for a dry run. */
void object_done_print(const struct cli *cli, const char *kind, const char *id, const char *done, bool dry_run);

/* Prints the error of a request for this target; for an unknown id also a suggestion. Returns the exit code. */
int object_error_print(struct api *a, const struct object_target *target, const struct api_error *trouble);

/* Suggests the nearest existing id of the kind, for an unknown id. Sends a request. */
void object_suggest_nearest(struct api *a, const struct object_target *target);

/* Options of every verb that changes something. */
struct change_values {
    bool dry_run;
};
#define DRY_RUN_ROW(values, field)                                                                                     \
    OPTION_FLAG_ROW("dry-run", 0, values, field, "Validate and show what would happen, without changing anything.")
extern const struct option change_options[];
extern const size_t change_options_len;

/* Parses "KEY=VALUE" words into an object. VALUE is parsed as YAML (5 is a number, true a boolean, "5" a string, null
 * removes the key); dots in KEY separate nested keys. Prints errors. */
int pairs_parse(const struct cli *cli, const char *const *words, size_t len, json_t *ret);
