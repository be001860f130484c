/* optask_index_test.c - after any changes, the index of steps equals a scan of all steps. */
#include "control/optask/optask_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"

enum { NODES = 12, TASKS = 5, ROUNDS = 4000 };

struct step {
    char id[32], node[16], optask[16];
    struct opstep_view view;
    bool there, orphan;
};

static bool is_open(const struct step *s)
{
    switch (s->view.state) {
    case OPSTEP_DONE:
    case OPSTEP_UNDONE: return s->view.drained || s->orphan;
    case OPSTEP_FAILED: return s->orphan;
    default: return true;
    }
}

/* Compares the index with all steps, which are ordered by ID. */
static void compare(const struct opindex *ix, const struct step *steps, unsigned round)
{
    size_t len, at = 0;
    const char *const *open = opindex_open(ix, &len);
    struct optask_counts want[TASKS] = {0};
    for (size_t i = 0; i < NODES * TASKS; i++) {
        const struct step *s = &steps[i];
        if (!s->there)
            continue;
        want[i % TASKS].active += opstep_active(s->view.state);
        want[i % TASKS].failed += opstep_failed(&s->view);
        if (!is_open(s))
            continue;
        if (at == len || strcmp(open[at], s->id) != 0)
            fail_msg("round %u: %s is not looked at", round, s->id);
        at++;
    }
    if (at != len)
        fail_msg("round %u: %s is looked at", round, open[at]);
    for (size_t i = 0; i < TASKS; i++) {
        struct optask_counts got = opindex_counts(ix, steps[i].optask);
        assert_int_equal(got.active, want[i].active);
        assert_int_equal(got.failed, want[i].failed);
    }
}

static void index_equals_a_full_scan(void **state)
{
    static struct step steps[NODES * TASKS];
    struct opindex *ix = opindex_new();
    uint64_t random = 1;
    (void)state;
    for (size_t i = 0; i < NODES * TASKS; i++) {
        struct step *s = &steps[i];
        (void)snprintf(s->node, sizeof s->node, "n%02zu", i / TASKS);
        (void)snprintf(s->optask, sizeof s->optask, "t%zu", i % TASKS);
        (void)snprintf(s->id, sizeof s->id, "%s/%s", s->node, s->optask);
        s->view = (struct opstep_view){.node = s->node, .optask = s->optask};
    }
    compare(ix, steps, 0);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        random = hash_pair(random, round);
        struct step *s = &steps[random % (NODES * TASKS)];
        s->there = random >> 16 & 7;
        s->orphan = (random >> 20 & 7) == 0;
        s->view.state = (enum opstep_state)((random >> 24) % (OPSTEP_UNDONE + 1));
        s->view.fault = random >> 32 & 1 ? OPFAULT_SCRIPT : OPFAULT_NONE;
        s->view.undo = random >> 33 & 1;
        s->view.drained = random >> 34 & 1;
        opindex_note(ix, s->id, s->there ? &s->view : NULL, s->orphan);
        compare(ix, steps, round);
    }
    for (size_t i = 0; i < NODES * TASKS; i++) {
        steps[i].there = false;
        opindex_note(ix, steps[i].id, NULL, false);
    }
    compare(ix, steps, ROUNDS + 1);
    opindex_free(ix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(index_equals_a_full_scan)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
