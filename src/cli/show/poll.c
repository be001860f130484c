#include "cli/show/poll.h"

#include "base/mem.h"
#include "wire/text/document.h"

int look_get(struct look *l, struct api *a, const struct target *target, json_t **ret)
{
    CLEANUP(json) json_t *object = NULL;
    int rc = object_try(a, target, &object, &l->trouble);

    if (rc != EXIT_OK && l->answered && api_comes_back(&l->trouble)) {
        l->away = true;
        *ret = NULL;
        return EXIT_OK;
    }
    l->away = l->told = false;
    if (rc != EXIT_OK)
        return object_trouble(a, target, &l->trouble);
    l->answered = true;
    *ret = take_ptr(&object);
    return EXIT_OK;
}

bool look_tell(struct look *l, const struct api *a)
{
    if (!l->away || l->told)
        return false;
    l->told = true;
    cli_warn(a->cli, "the server does not respond; waiting until it does");
    cli_hint(a->cli, "%s", l->trouble.err.text);
    return true;
}
