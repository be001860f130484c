/* tenant_input.h - the inputs of tenants, for recording and replay; like cache_input.h for a cache. */
#pragma once

#include "kube/tenant/tenant.h"

enum tenant_op {
    TENANT_PUT,
    TENANT_DROP,
    TENANT_RECALL,
    TENANT_RECHECK, /* rejected objects were checked again */
    TENANT_USAGE,   /* its usage records are these: {"use", "spent"} */
    /* The following occur only in an image. */
    TENANT_FORCE,   /* this spec is in force, even if the rules reject it now */
    TENANT_CLAIMED, /* tenants_claim was called */
    TENANT_OPS,
};

struct tenant_input {
    enum tenant_op op;
    enum kind kind;
    const char *name;
    const json_t *spec; /* not for DROP, JUDGE and CLAIMED */
};
typedef void tenant_listener(void *ctx, const struct tenant_input *in);

/* Sets the listener, called with each input before it takes effect; inputs that change nothing are left out. NULL: no
 * listener. */
void tenants_listen(struct tenants *t, tenant_listener *listener, void *ctx);
/* Emits the inputs that rebuild these tenants from empty ones. */
void tenants_dump(const struct tenants *t, tenant_listener *tell, void *ctx);
void tenants_input_apply(struct tenants *t, const struct tenant_input *in);
