/* known_objects.h - the objects that a watch has reported: key, uid and version of each, and a mark to detect deleted
 * ones.
 *
 * A part of kube/client/watch.h. About 130 bytes per object.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct known_object {
    uint64_t version;
    uint32_t round;     /* last full listing that contained it */
    uint16_t name, uid; /* offsets in `text` */
    char text[];        /* namespace, name, uid, each NUL-terminated */
};

static inline const char *known_object_namespace(const struct known_object *o)
{
    return o->text;
}
static inline const char *known_object_name(const struct known_object *o)
{
    return o->text + o->name;
}
static inline const char *known_object_uid(const struct known_object *o)
{
    return o->text + o->uid;
}

struct known_objects {
    VEC(struct known_object *) objects;
    struct map map; /* from namespace and name to the index in `objects` */
};

/* Limit of namespace, name and uid together; Kubernetes allows less. */
enum { KNOWN_TEXT_MAX = 512 };

void known_objects_free(struct known_objects *s);
/* NULL: not known. */
struct known_object *known_object_find(const struct known_objects *s, const char *namespace, const char *name);
/* Adds an object that is not known; its texts have at most KNOWN_TEXT_MAX bytes. */
struct known_object *known_object_add(struct known_objects *s, const char *namespace, const char *name,
                                      const char *uid);
/* Removes the object; the caller frees it with mem_free. */
void known_object_remove(struct known_objects *s, struct known_object *o);
