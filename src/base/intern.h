/* intern.h - equal strings become equal numbers.
 *
 * A number is only good for equality and for finding: which string came first is history, and no decision may depend
 * on it. 0 is the empty string. Strings stay until intern_done.
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
/* NULL counts as "". */
sym intern_put(struct intern *in, const char *s);
/* MAP_NONE when the string was never put. */
sym intern_find(const struct intern *in, const char *s);

static inline const char *intern_text(const struct intern *in, sym s)
{
    return *(const char *const *)pages_at(&in->strings, s);
}
