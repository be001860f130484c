/* job_names.h - jobs that are not over, by their owner and name, the eldest first: so that one that waits for the earlier ones
 * of its name need not look at all there are.
 *
 * Told of every job that is not over; what is over or gone is found out when somebody asks, and dropped then.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "control/state/state.h"

struct job_name {
    uint64_t key;
    VEC(uint64_t) jobs; /* sorted */
    size_t head;        /* those before it are over */
};

struct job_names {
    VEC(struct job_name) rows;
    VEC(uint32_t) spare; /* rows of no name */
    struct map map;
};
void job_names_done(struct job_names *n);

/* Stands for its owner and name; such a key is no number of a job. */
#define JOB_NAME_KEY (UINT64_C(1) << 63)
uint64_t job_name_key(const struct object *job);
/* A job that is not over; told twice it is listed once. One without a name is not listed. */
void job_names_add(struct job_names *n, const struct object *job);
/* The first of a key that is not over; NULL: none. */
const struct object *job_names_eldest(struct job_names *n, const struct state *s, uint64_t key);
