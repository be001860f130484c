#include "kube/tenant/tenant_input.h"

#include "kube/tenant/tenant_internal.h"
#include "wire/text/document.h"

void tenants_listen(struct tenants *t, tenant_listener *listener, void *ctx)
{
    t->listener = listener;
    t->listener_ctx = ctx;
}

void tenants_dump(const struct tenants *t, tenant_listener *tell, void *ctx)
{
    for (size_t i = 0; i < t->at.len; i++) {
        const struct tenant *e = &t->at.at[i];
        if (e->name && e->in_force)
            tell(ctx, &(struct tenant_input){TENANT_FORCE, e->kind, e->name, e->in_force});
        else if (e->name && e->recalled)
            tell(ctx, &(struct tenant_input){TENANT_RECALL, e->kind, e->name, e->recalled});
    }
    for (size_t i = 0; i < t->at.len; i++)
        if (t->at.at[i].name && t->at.at[i].spec)
            tell(ctx, &(struct tenant_input){TENANT_PUT, t->at.at[i].kind, t->at.at[i].name, t->at.at[i].spec});
    tell(ctx, &(struct tenant_input){.op = TENANT_RECHECK, .name = ""});
    for (size_t i = 0; i < t->at.len; i++) {
        const struct tenant *e = &t->at.at[i];
        CLEANUP(json) json_t *past = e->name ? tenant_past_doc(t, e->kind, e->name) : NULL;
        if (past)
            tell(ctx, &(struct tenant_input){TENANT_USAGE, e->kind, e->name, past});
    }
    if (t->claimed)
        tell(ctx, &(struct tenant_input){.op = TENANT_CLAIMED, .name = ""});
}

void tenants_input_apply(struct tenants *t, const struct tenant_input *in)
{
    switch (in->op) {
    case TENANT_PUT: (void)tenants_put(t, in->kind, in->name, in->spec, NULL); break;
    case TENANT_DROP: tenants_drop(t, in->kind, in->name); break;
    case TENANT_RECALL: tenants_restore_in_force(t, in->kind, in->name, in->spec); break;
    case TENANT_RECHECK: (void)tenants_take_changes(t); break;
    case TENANT_USAGE: tenant_past_set(t, in->kind, in->name, in->spec); break;
    case TENANT_FORCE: tenant_force(t, in->kind, in->name, in->spec); break;
    case TENANT_CLAIMED: t->claimed = true; break;
    case TENANT_OPS: break;
    }
}
