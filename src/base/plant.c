/* plant.c - selects the deliberate bug named in the environment. */
#include "base/plant.h"

#ifdef BERTH_PLANT

#include <stdlib.h>
#include <string.h>

bool plant_is(enum plant plant)
{
    static const char *const names[] = {"none",
#define X(name, text) #name,
                                        PLANTS(X)
#undef X
    };
    static enum plant chosen = PLANT_NONE;
    static bool initialized;
    if (!initialized) {
        const char *want = getenv("BERTH_PLANT");
        for (size_t i = 0; want && i < sizeof names / sizeof *names; i++)
            if (strcmp(names[i], want) == 0)
                chosen = (enum plant)i;
        initialized = true;
    }
    return plant == chosen;
}

#else

/* ISO C does not allow an empty translation unit. */
typedef int plant_unused;

#endif
