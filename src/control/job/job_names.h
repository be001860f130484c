/* job_names.h - index of unfinished jobs by owner and name, oldest first, for jobs that wait for earlier jobs of their
 * name.
 *
 * Every unfinished job is added. Jobs that have ended or are gone are dropped at lookup.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "control/state/state.h"

struct job_name {
    uint64_t key;
    VEC(uint64_t) jobs; /* ascending numbers */
    size_t head;        /* jobs before this index have ended */
};

struct job_names {
    VEC(struct job_name) rows;
    VEC(uint32_t) spare; /* unused rows */
    struct map map;
};
void job_names_done(struct job_names *n);

/* Hash of owner and name; the top bit distinguishes such a key from the number of a job. */
#define JOB_NAME_KEY (UINT64_C(1) << 63)
uint64_t job_name_key(const struct object *job);
/* Adds an unfinished job; adding it twice lists it once. A job without a name is not listed. */
void job_names_add(struct job_names *n, const struct object *job);
/* Returns the oldest unfinished job of the key; NULL: none. */
const struct object *job_names_oldest(struct job_names *n, const struct state *s, uint64_t key);
