/* bound.c - a minimum of seeds, then a bound on CPU time. */
#include "bound.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_NS INT64_C(1000000000)

static int64_t processor_ns(void)
{
    struct timespec t;
    int rc = clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    assert(rc == 0);
    (void)rc;
    return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

void bound_begin(struct bound *bound)
{
    const char *bed = getenv("BERTH_BED");
    assert(bound->least <= bound->most);
    bound->end_ns = bed && strcmp(bed, "whole") == 0 ? INT64_MAX : processor_ns() + bound->seconds * SECOND_NS;
}

bool bound_goes_on(const struct bound *bound, size_t done)
{
    return done < bound->least || (done < bound->most && processor_ns() < bound->end_ns);
}
