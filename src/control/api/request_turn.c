#include "control/api/request_turn.h"

#include "control/control_parts.h"

/* Runs the entry and charges the time to its account. */
static void run_charged(struct control *c, struct fair_account *a, struct fair_entry *e)
{
    int64_t start_ns = c->env.steady_ns(c->env.ctx);
    fair_account_ref_again(a); /* the entry may drop its own reference */
    e->run(e);
    fair_queue_charge(c->requests, a, c->env.steady_ns(c->env.ctx) - start_ns);
    fair_account_unref(c->requests, a);
}

void request_turns_schedule(struct control *c)
{
    bool nothing = fair_queue_has_slice(c->requests) && !fair_queue_ready(c->requests);
    if (c->serve_asked || nothing || !c->env.serve_soon)
        return;
    c->serve_asked = true;
    c->env.serve_soon(c->env.ctx);
}

void control_serve(struct control *c)
{
    struct fair_entry *e;
    c->serve_asked = false;
    fair_queue_renew(c->requests);
    while (fair_queue_has_slice(c->requests) && (e = fair_queue_pop(c->requests)))
        run_charged(c, e->account, e);
    request_turns_schedule(c);
}

void request_turns_drain(struct control *c)
{
    fair_queue_hold_none(c->requests);
    for (struct fair_entry *e; (e = fair_queue_pop(c->requests));)
        e->run(e);
}

bool request_turn_run(struct control *c, struct fair_account *a, struct fair_entry *e)
{
    if (!c->env.serve_soon)
        e->run(e);
    else if (fair_queue_idle(c->requests, a))
        run_charged(c, a, e);
    else if (!fair_queue_push(c->requests, a, e))
        return false;
    request_turns_schedule(c);
    return true;
}

void request_turn_resume(struct control *c, struct fair_account *a, struct fair_entry *e)
{
    if (c->env.serve_soon)
        fair_queue_push_first(c->requests, a, e);
    else
        e->run(e);
    request_turns_schedule(c);
}

bool request_turn_enqueue(struct control *c, struct fair_account *a, struct fair_entry *e)
{
    bool waits = fair_queue_push(c->requests, a, e);
    request_turns_schedule(c);
    return waits;
}
