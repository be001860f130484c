/* known_objects.h - which objects a watch has told of: key, uid and version of each, and a mark for finding what is gone.
 *
 * A part of kube/client/watch.h. Some 130 bytes an object, all in all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct seen_object {
    uint64_t version;
    uint32_t round;     /* the last reading of everything that found it */
    uint16_t name, uid; /* where they begin in `text` */
    char text[];        /* namespace, name, uid; each with a NUL */
};

static inline const char *seen_namespace(const struct seen_object *o)
{
    return o->text;
}
static inline const char *seen_name(const struct seen_object *o)
{
    return o->text + o->name;
}
static inline const char *seen_uid(const struct seen_object *o)
{
    return o->text + o->uid;
}

struct seen {
    VEC(struct seen_object *) objects;
    struct map map; /* of namespace and name, to the place in `objects` */
};

/* Namespace, name, uid: none longer than Kubernetes allows. */
enum { SEEN_TEXT_MAX = 512 };

void seen_done(struct seen *s);
/* NULL when it is not there. */
struct seen_object *seen_find(const struct seen *s, const char *namespace, const char *name);
/* One that is not there; texts of at most SEEN_TEXT_MAX together. */
struct seen_object *seen_add(struct seen *s, const char *namespace, const char *name, const char *uid);
/* Takes it out; the caller frees it with mem_free. */
void seen_take(struct seen *s, struct seen_object *o);
