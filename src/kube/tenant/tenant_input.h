/* tenant_input.h - all that tenants are told, for whoever keeps a record of it and whoever makes the same ones again: as cache_input.h for a
 * projection.
 */
#pragma once

#include "kube/tenant/tenant.h"

enum tenant_op {
    TENANT_PUT,
    TENANT_DROP,
    TENANT_RECALL,
    TENANT_JUDGE, /* what was refused was judged again */
    TENANT_PAST,  /* its books of past use are these: {"use", "spent"} */
    /* Only of an image. */
    TENANT_FORCE,   /* this spec is in force, whatever the rules say by now */
    TENANT_CLAIMED, /* somebody has claimed something */
    TENANT_OPS,
};

struct tenant_input {
    enum tenant_op op;
    enum kind kind;
    const char *name;
    const json_t *spec; /* not of DROP, JUDGE and CLAIMED */
};
typedef void tenant_listener(void *ctx, const struct tenant_input *in);

/* Tells of each input before it takes effect; what changes nothing is not told. NULL: nobody any more. */
void tenants_listen(struct tenants *t, tenant_listener *listener, void *ctx);
/* Inputs that make the same tenants of none. */
void tenants_image(const struct tenants *t, tenant_listener *tell, void *ctx);
void tenants_input_take(struct tenants *t, const struct tenant_input *in);
