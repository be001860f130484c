#include "cli/show/poll.h"

#include "base/mem.h"
#include "wire/text/document.h"

int object_poll_get(struct object_poll *l, struct api *a, const struct object_target *target, json_t **ret)
{
    CLEANUP(json) json_t *object = NULL;
    int rc = object_try(a, target, &object, &l->trouble);

    if (rc != EXIT_OK && l->answered && api_error_is_transient(&l->trouble)) {
        l->away = true;
        *ret = NULL;
        return EXIT_OK;
    }
    l->away = l->told = false;
    if (rc != EXIT_OK)
        return object_error_print(a, target, &l->trouble);
    l->answered = true;
    *ret = take_ptr(&object);
    return EXIT_OK;
}

bool object_poll_warn(struct object_poll *l, const struct api *a)
{
    if (!l->away || l->told)
        return false;
    l->told = true;
    cli_warn(a->cli, "the server does not respond; waiting until it does");
    cli_hint(a->cli, "%s", l->trouble.err.text);
    return true;
}
