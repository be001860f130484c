#include "control/api/request_turn.h"

#include "control/control_parts.h"

/* Runs the entry and charges the time to its account. */
static void run_charged(struct control *c, struct fair_account *a, struct fair_entry *e)
{
    int64_t start_ns = c->env.steady_ns(c->env.ctx);
    fair_account_rejoin(a); /* the entry may drop its own reference */
    e->run(e);
    fair_queue_charge(c->requests, a, c->env.steady_ns(c->env.ctx) - start_ns);
    fair_account_leave(c->requests, a);
}

void turns_serve_soon(struct control *c)
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
    turns_serve_soon(c);
}

void turns_stop(struct control *c)
{
    fair_queue_hold_none(c->requests);
    for (struct fair_entry *e; (e = fair_queue_pop(c->requests));)
        e->run(e);
}

bool turn_take(struct control *c, struct fair_account *a, struct fair_entry *e)
{
    if (!c->env.serve_soon)
        e->run(e);
    else if (fair_queue_idle(c->requests, a))
        run_charged(c, a, e);
    else if (!fair_queue_push(c->requests, a, e))
        return false;
    turns_serve_soon(c);
    return true;
}

void turn_take_again(struct control *c, struct fair_account *a, struct fair_entry *e)
{
    if (c->env.serve_soon)
        fair_queue_push_first(c->requests, a, e);
    else
        e->run(e);
    turns_serve_soon(c);
}

bool turn_wait(struct control *c, struct fair_account *a, struct fair_entry *e)
{
    bool waits = fair_queue_push(c->requests, a, e);
    turns_serve_soon(c);
    return waits;
}
