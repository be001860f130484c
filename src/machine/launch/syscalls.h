/* syscalls.h - seccomp rules: system calls that an instance may not use.
 *
 * An instance has no capabilities, so the kernel rejects most of these anyway; the filter makes their code, with
 * possible vulnerabilities, unreachable. It is a deny list, so that ordinary programs are not affected. Denied calls
 * fail with EPERM, as without the privilege. clone3, whose flags a filter cannot read, fails with ENOSYS, so that the C
 * library falls back to clone. System calls of other ABIs, which have different numbers, fail with ENOSYS.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Condition of a rule. BIT: this bit of the argument is set; CLEAR: it is not set. */
enum syscall_test { CALL_ANY, CALL_EQUAL, CALL_BIT, CALL_CLEAR };

struct syscall_rule {
    const char *name;
    int number;
    int code; /* errno of the denied call */
    enum syscall_test test;
    unsigned argument; /* index; its low 32 bits are compared */
    uint32_t value;
};
extern const struct syscall_rule syscall_rules[];
extern const size_t syscall_rules_len;
/* Additional rules for the net sandbox. */
extern const struct syscall_rule syscall_network_rules[];
extern const size_t syscall_network_rules_len;

/* Install the filter for the calling thread and all its descendants, irrevocably. Without root, no_new_privs must be
 * set before. */
int syscalls_narrow(struct berth_err *err);
int syscalls_narrow_network(struct berth_err *err);
