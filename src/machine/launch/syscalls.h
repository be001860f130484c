/* syscalls.h - which calls of the kernel an instance may not make.
 *
 * An instance has no capabilities, so the kernel refuses most of these anyway; a filter keeps their code out of its reach, and
 * with it the faults in there. What programs of people use is left alone: it is a list of what is refused, not of what is
 * allowed. Refused calls end with EPERM, as without the right to them; clone3, whose flags a filter cannot see, with ENOSYS,
 * so that the C library takes clone. Calls for another kind of processor, whose numbers mean something else, are not there.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* What of a call is looked at. BIT: this bit of the argument is set; CLEAR: it is not. */
enum syscall_test { CALL_ANY, CALL_EQUAL, CALL_BIT, CALL_CLEAR };

struct syscall_rule {
    const char *name;
    int number;
    int code; /* how it ends */
    enum syscall_test test;
    unsigned argument; /* its low 32 bits */
    uint32_t value;
};
extern const struct syscall_rule syscall_rules[];
extern const size_t syscall_rules_len;
/* What the network half of the agent is refused besides. */
extern const struct syscall_rule syscall_network_rules[];
extern const size_t syscall_network_rules_len;

/* For the calling thread and all that it brings forth, for ever. No new privileges must have been given up before. */
int syscalls_narrow(struct berth_err *err);
int syscalls_narrow_network(struct berth_err *err);
