/* intern.h - string interning: equal strings get equal numbers.
 *
 * Use a number only for equality and lookup. The order of the numbers depends on the history of insertions, so no
 * decision may depend on it. 0 is the empty string. Strings stay valid until intern_done.
 */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "base/pages.h"

typedef uint32_t sym; /* an interned string; 0 is "" */

struct intern {
    struct arena arena;
    struct map map;
    struct pages strings; /* of const char * */
};

void intern_init(struct intern *in);
void intern_done(struct intern *in);
/* Adds the string unless it is present, and returns its number. NULL counts as "". */
sym intern_put(struct intern *in, const char *s);
/* Returns the number of the string, or MAP_NONE if the string was never added. */
sym intern_find(const struct intern *in, const char *s);

static inline const char *intern_text(const struct intern *in, sym s)
{
    return *(const char *const *)pages_at(&in->strings, s);
}
