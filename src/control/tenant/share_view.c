#include "control/tenant/share_view.h"

#include <errno.h>
#include <string.h>

#include "control/explain/forecast.h"
#include "control/explain/queue_view.h"
#include "control/system/settings_table.h"
#include "wire/text/document.h"

/* ---- shares ----------------------------------------------------------------------------------------------------- */

struct share_list {
    struct request *c;
    json_t *items;
};

static void share_add(void *ctx, const struct berth_share *share)
{
    struct share_list *t = ctx;
    static const char user[] = "user/";
    if (strncmp(share->quota, user, sizeof user - 1) != 0)
        return;
    const struct object *o = state_find(t->c->state, KIND_USER, share->quota + sizeof user - 1);
    if (!o || !(request_may_see(t->c, o) || permit(&t->c->caller, PERMIT_READ, o->id, o->group)))
        return;
    (void)json_array_append_new(t->items, json_pack("{s:s, s:s*, s:I, s:f, s:f}", "user", o->id, "group",
                                                    *o->group ? o->group : NULL, "weight", (json_int_t)share->weight,
                                                    "used_hours", (double)share->used / (1000.0 * 3600), "fair_share",
                                                    (double)share->factor / 1000000));
}

int shares_run(struct request *c)
{
    const struct forecast_run *run = NULL;
    int rc = forecast_request(c, &(struct forecast_spec){0}, &run);
    if (rc < 0 || !run)
        return rc;
    struct share_list t = {c, json_array()};
    berth_plan_shares(run->plans[0].plan, share_add, &t);
    c->answer.body =
        json_pack("{s:o, s:I, s:o}", "items", t.items, "half_life_s",
                  (json_int_t)system_setting_number(c->state, SETTING_HALF_LIFE_S), "forecast", forecast_label(run));
    return 0;
}

/* ---- prices ----------------------------------------------------------------------------------------------------- */

static int numbers_check(const json_t *doc, const char *key, bool needed, struct berth_err *err)
{
    const json_t *of = json_object_get(doc, key);
    const char *name;
    json_t *value;
    if (!of && !needed)
        return 0;
    if (!json_is_object(of))
        return err_set(err, EINVAL, "%s: expected {name: number}", key);
    json_object_foreach((json_t *)of, name,
                        value) if (!json_is_number(value) ||
                                   json_number_value(value) <
                                       0) return err_set(err, EINVAL, "%s: %.80s: expected a number of 0 or more", key,
                                                         name);
    return 0;
}

static int prices_read(const char *text, json_t **ret, struct berth_err *err)
{
    CLEANUP(json) json_t *doc = NULL;
    const char *currency;
    int rc = document_parse(text, strlen(text), "prices", &doc, err);
    if (rc < 0)
        return rc;
    currency = json_string_value(json_object_get(doc, "currency"));
    if (!json_is_object(doc) || !currency || !*currency)
        return err_set(err, EINVAL, "currency: missing; expected the text of a price file, see docs/billing.md");
    rc = numbers_check(doc, "prices", true, err);
    if (rc == 0)
        rc = numbers_check(doc, "queues", false, err);
    if (rc == 0 && json_object_get(doc, "free") && !json_is_array(json_object_get(doc, "free")))
        rc = err_set(err, EINVAL, "free: expected a list of outcomes");
    if (rc == 0) {
        *ret = doc;
        doc = NULL;
    }
    return rc;
}

int prices_check(const char *text, struct berth_err *err)
{
    CLEANUP(json) json_t *doc = NULL;
    return *text ? prices_read(text, &doc, err) : 0;
}

/* Leaves out the budgets, which only the program that enforces them needs. */
int prices_run(struct request *c)
{
    json_t *doc = NULL;
    const char *text = system_setting_text(c->state, SETTING_PRICES, &c->arena);
    int rc = *text ? prices_read(text, &doc, &c->err) : 0;
    if (rc < 0)
        return rc;
    (void)json_object_del(doc, "budgets");
    c->answer.body = doc ? doc : json_object();
    return 0;
}
