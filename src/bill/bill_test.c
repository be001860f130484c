/* bill_test.c - records become a book, a book and prices become a bill, a spent budget lowers limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "bill/bill.h"
#include "bill/options.h"
#include "wire/text/yaml.h"

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

static json_t *yaml(const char *text)
{
    json_t *doc = NULL;
    struct berth_err err = {0};
    if (yaml_parse(text, strlen(text), "test", &doc, &err) < 0)
        fail_msg("%s", err.text);
    return doc;
}

static void add_page(struct usage_book *b, const char *text)
{
    struct berth_err err = {0};
    bool more = false;
    json_t *page = yaml(text);
    if (book_add_page(b, page, &more, &err) < 0)
        fail_msg("%s", err.text);
    json_decref(page);
}

#define PRICES "--- {currency: EUR, prices: {cpu: 0.02, memory: 0.004, gpu: 1.5}, queues: {spot: 0.5}, free: [lost]}"

static struct prices prices_of_text(const char *text)
{
    struct prices p;
    struct berth_err err = {0};
    if (prices_parse(text, "prices", &p, &err) < 0)
        fail_msg("%s", err.text);
    return p;
}

static int64_t total(const struct usage_book *b, const char *prices, const struct bill_question *q)
{
    struct prices p = prices_of_text(prices);
    CLEANUP(bill) struct bill bill;
    bill_make(b, &p, q, &bill);
    prices_done(&p);
    return bill.money;
}

/* One record with these keys, and its price. */
static void records_have_their_price(void **state)
{
    (void)state;
    static const struct {
        const char *label, *keys;
        int64_t money;
    } rows[] = {
        {"a core for an hour", "resources: {cpu: 1}",                                20000  },
        {"half a core",        "resources: {cpu: 500m}",                             10000  },
        {"memory",             "resources: {memory: 10Gi}",                          40000  },
        {"gpus",               "resources: {gpu: 4}",                                6000000},
        {"half a gpu",         "resources: {gpu: '0.5'}",                            750000 },
        {"all of it",          "resources: {cpu: 1, memory: 10Gi, gpu: 1}",          1560000},
        {"a cheaper queue",    "queue: spot, resources: {cpu: 1}",                   10000  },
        {"its node was lost",  "outcome: lost, resources: {cpu: 1}",                 0      },
        {"what has no price",  "resources: {licence: 3}",                            0      },
        {"a month that turns", "start: '2026-03-31T23:30:00Z', resources: {cpu: 1}", 20000  },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(book) struct usage_book b = {0};
        CLEANUP(str) struct str page = {0};
        bool turns = strstr(rows[i].keys, "start:") != NULL;
        str_addf(&page, "{after: 1, first: 1, items: [{id: 1, owner: ann, group: red, %s%s%s, end: '%s'}]}",
                 rows[i].keys, turns ? "" : ", start: '2026-03-01T12:00:00Z'",
                 strstr(rows[i].keys, "outcome") ? "" : ", outcome: ended",
                 turns ? "2026-04-01T00:30:00Z" : "2026-03-01T13:00:00Z");
        add_page(&b, str_text(&page));
        int64_t money = total(&b, PRICES, &(struct bill_question){0});
        if (money != rows[i].money)
            fail_msg("%s: %lld instead of %lld", rows[i].label, (long long)money, (long long)rows[i].money);
        if (turns) {
            assert_int_equal(total(&b, PRICES, &(struct bill_question){.month = "2026-03"}), money / 2);
            assert_int_equal(total(&b, PRICES, &(struct bill_question){.month = "2026-04"}), money / 2);
        }
    }
}

#define HOUR(id, owner, group)                                                                                         \
    "{id: " #id ", owner: " #owner ", group: " #group ", outcome: ended, start: '2026-03-01T12:00:00Z', "              \
    "end: '2026-03-01T13:00:00Z', resources: {cpu: 1}}"

static void a_record_counts_once(void **state)
{
    (void)state;
    CLEANUP(book) struct usage_book b = {0};
    add_page(&b, "{after: 2, first: 1, items: [" HOUR(1, ann, red) "," HOUR(2, bob, red) "]}");
    add_page(&b, "{after: 3, first: 1, items: [" HOUR(2, bob, red) "," HOUR(3, ann, red) "]}"); /* 2 is repeated */
    assert_int_equal(b.after, 3);
    assert_int_equal(b.missed, 0);
    assert_int_equal(total(&b, PRICES, &(struct bill_question){0}), 60000);
    assert_int_equal(total(&b, PRICES, &(struct bill_question){.user = "ann"}), 40000);
    add_page(&b, "{after: 9, first: 8, items: [" HOUR(8, ann, red) "]}"); /* 9 was visible only to another user */
    assert_int_equal(b.after, 9);
    assert_int_equal(b.missed, 4);
}

static void book_survives_save_and_load(void **state)
{
    (void)state;
    char path[] = "/tmp/berth_book_XXXXXX";
    struct berth_err err = {0};
    CLEANUP(book) struct usage_book b = {0};
    CLEANUP(book) struct usage_book again = {0};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    (void)unlink(path);
    assert_int_equal(book_load(path, &again, &err), 0); /* no file: empty */
    assert_int_equal(again.after, 0);
    add_page(&b, "{after: 2, first: 1, items: [" HOUR(1, ann, red) "," HOUR(2, bob, blue) "]}");
    struct lowered_limit *l = lowered_limit_add(&b, "group/red", "2026-03");
    (void)json_object_set_new(l->was, "gpu", json_null());
    (void)json_object_set_new(l->set, "gpu", json_integer(0));
    assert_int_equal(book_save(&b, path, &err), 0);
    if (book_load(path, &again, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(again.after, 2);
    assert_int_equal(again.rows_len, 2);
    assert_int_equal(total(&again, PRICES, &(struct bill_question){0}), 40000);
    assert_non_null(lowered_limit_find(&again, "group/red"));
    add_page(&again, "{after: 3, first: 1, items: [" HOUR(3, ann, red) "]}");
    assert_int_equal(again.rows_len, 2); /* hours were added to the same row */
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    (void)fputs("{\"berth_book\": 99}", f);
    (void)fclose(f);
    CLEANUP(book) struct usage_book bad = {0};
    assert_int_equal(book_load(path, &bad, &err), -EBADMSG);
    (void)unlink(path);
}

static void invalid_prices_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"--- {prices: {cpu: 1}}",                                                           "currency"          },
        {"--- {currency: EUR}",                                                              "prices"            },
        {"--- {currency: EUR, prices: {cpu: -1}}",                                           "0 or more"         },
        {"--- {currency: EUR, prices: {cpu: cheap}}",                                        "prices: cpu"       },
        {"--- {currency: EUR, prices: {cpu: 0.0000001}}",                                    "too many digits"   },
        {"--- {currency: EUR, prices: {cpu: 1}, queue: {}}",                                 "queue"             },
        {"--- {currency: EUR, prices: {cpu: 1}, budgets: [{amount: 1}]}",                    "user or of a group"},
        {"--- {currency: EUR, prices: {cpu: 1}, budgets: [{user: a, group: b, amount: 1}]}", "user or of a group"},
        {"--- {currency: EUR, prices: {cpu: 1}, budgets: [{user: a}]}",                      "amount"            },
        {"--- {currency: EUR, prices: {cpu: 1}, budgets: [{user: a, amount: 1, floor: 0}]}", "limits like"       },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct prices p = {0};
        struct berth_err err = {0};
        int rc = prices_parse(rows[i].text, "prices.yaml", &p, &err);
        if (rc == 0 || !strstr(err.text, rows[i].says) || strncmp(err.text, "prices.yaml: ", 13) != 0)
            fail_msg("%s: %d, %s", rows[i].text, rc, err.text);
    }
}

static void money_text_has_two_decimals(void **state)
{
    (void)state;
    static const struct {
        int64_t money;
        const char *text;
    } rows[] = {
        {0,        "0.00"    },
        {12500000, "12.50"   },
        {1,        "0.000001"},
        {1234567,  "1.234567"},
        {-2500000, "-2.50"   },
    };
    char buf[MONEY_TEXT_MAX];
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_string_equal(money_text(rows[i].money, buf), rows[i].text);
}

static void bills_are_printed_in_three_forms(void **state)
{
    (void)state;
    CLEANUP(book) struct usage_book b = {0};
    add_page(&b, "{after: 3, first: 1, items: [" HOUR(1, ann, red) "," HOUR(2, bob, red) "," HOUR(3, ann, red) "]}");
    static const struct {
        enum bill_form form;
        enum bill_by by;
        const char *says;
    } rows[] = {
        {BILL_CSV,   BILL_BY_USER,  "2026-03,red,ann,2,2.000000,0.000000,0.000000,0.04,EUR\n"},
        {BILL_CSV,   BILL_BY_GROUP, "2026-03,red,,3,3.000000,0.000000,0.000000,0.06,EUR\n"   },
        {BILL_JSON,  BILL_BY_USER,  "\"total\": \"0.06\""                                    },
        {BILL_TABLE, BILL_BY_USER,  "GPU-HOURS"                                              },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *text = NULL;
        size_t len = 0;
        FILE *f = open_memstream(&text, &len);
        struct prices p = prices_of_text(PRICES);
        CLEANUP(bill) struct bill bill;
        bill_make(&b, &p, &(struct bill_question){.by = rows[i].by}, &bill);
        bill_print(&bill, &p, rows[i].form, f);
        (void)fclose(f);
        if (!strstr(text, rows[i].says))
            fail_msg("%s is not in: %s", rows[i].says, text);
        free(text);
        prices_done(&p);
    }
}

/* ---- budgets ---------------------------------------------------------------------------------------------------- */

/* A fake server with one group, whose requests can be made to fail. */
struct fake {
    json_t *group;
    int fail; /* the next patch fails */
    int patches;
};

static int fake_get(void *ctx, const char *path, json_t **ret, struct berth_err *err)
{
    struct fake *f = ctx;
    if (strcmp(path, "/v1/groups/red") != 0)
        return err_set(err, ENOENT, "no %s", path);
    *ret = json_deep_copy(f->group);
    return 0;
}

static int fake_patch(void *ctx, const char *path, const json_t *body, struct berth_err *err)
{
    struct fake *f = ctx;
    const char *resource;
    json_t *value;
    assert_string_equal(path, "/v1/groups/red");
    f->patches++;
    if (f->fail)
        return err_set(err, f->fail, "it fails");
    json_t *limits = json_object_get(json_object_get(f->group, "quota"), "limits");
    json_object_foreach(json_object_get(json_object_get(body, "quota"), "limits"), resource, value)
    {
        if (json_is_null(value))
            (void)json_object_del(limits, resource);
        else
            (void)json_object_set(limits, resource, value);
    }
    return 0;
}

#define BUDGET "--- {currency: EUR, prices: {cpu: 1}, budgets: [{group: red, amount: 2, floor: {gpu: 0, pods: 1}}]}"
#define MARCH INT64_C(1772884800000000000)
#define APRIL INT64_C(1775649600000000000)

static int enforce(struct fake *f, struct usage_book *b, int64_t now_ns, bool really)
{
    struct berth_err err = {0};
    struct bill_server server = {.ctx = f, .get = fake_get, .patch = fake_patch};
    struct prices p = prices_of_text(BUDGET);
    FILE *nowhere = fopen("/dev/null", "we");
    int rc = bill_enforce(b, &p, &server, NULL, now_ns, really, nowhere, &err);
    (void)fclose(nowhere);
    prices_done(&p);
    return rc;
}

static char *limits_text(const struct fake *f)
{
    return json_dumps(json_object_get(json_object_get(f->group, "quota"), "limits"), JSON_COMPACT | JSON_SORT_KEYS);
}

static void limits_are(const struct fake *f, const char *want)
{
    char *text = limits_text(f);
    assert_string_equal(text, want);
    free(text);
}

static void a_spent_budget_lowers_limits_until_the_next_month(void **state)
{
    (void)state;
    CLEANUP(book) struct usage_book b = {0};
    struct fake f = {.group = yaml("{id: red, quota: {limits: {gpu: 8, cpu: 100}}}")};
    add_page(&b, "{after: 1, first: 1, items: [" HOUR(1, ann, red) "]}");
    assert_int_equal(enforce(&f, &b, MARCH, true), 0);
    assert_int_equal(f.patches, 0); /* one of two units of money is spent */
    add_page(&b, "{after: 2, first: 1, items: [" HOUR(2, bob, red) "]}");
    assert_int_equal(enforce(&f, &b, MARCH, false), 0);
    assert_int_equal(f.patches, 0); /* without `really` nothing changes */
    f.fail = EACCES;
    assert_int_equal(enforce(&f, &b, MARCH, true), -EACCES);
    assert_int_equal(b.lowered_len, 0);
    f.fail = 0;
    assert_int_equal(enforce(&f, &b, MARCH, true), 0);
    limits_are(&f, "{\"cpu\":100,\"gpu\":0,\"pods\":1}");
    int patches = f.patches;
    assert_int_equal(enforce(&f, &b, MARCH, true), 0);
    assert_int_equal(f.patches, patches); /* no second patch */
    assert_int_equal(enforce(&f, &b, APRIL, true), 0);
    limits_are(&f, "{\"cpu\":100,\"gpu\":8}");
    assert_int_equal(b.lowered_len, 0);
    json_decref(f.group);
}

static void a_floor_raises_no_limit(void **state)
{
    (void)state;
    CLEANUP(book) struct usage_book b = {0};
    struct fake f = {.group = yaml("{id: red, quota: {limits: {gpu: 8, pods: 0}}}")};
    add_page(&b, "{after: 2, first: 1, items: [" HOUR(1, ann, red) "," HOUR(2, ann, red) "]}");
    assert_int_equal(enforce(&f, &b, MARCH, true), 0);
    limits_are(&f, "{\"gpu\":0,\"pods\":0}");
    assert_int_equal(enforce(&f, &b, APRIL, true), 0);
    limits_are(&f, "{\"gpu\":8,\"pods\":0}");
    json_decref(f.group);
}

/* Sums that overflow become the maximum, and never negative. */
static void sums_saturate(void **state)
{
    (void)state;
    static const char dear[] = "--- {currency: EUR, prices: {cpu: 9000000000000, gpu: 9000000000000}, "
                               "queues: {q: 9000000000000000}}";
    CLEANUP(book) struct usage_book b = {0};
    add_page(&b, "{after: 2, first: 1, items: ["
                 "{id: 1, owner: ann, outcome: ended, queue: q, start: '2026-03-01T12:00:00Z', "
                 "end: '2026-03-30T13:00:00Z', resources: {cpu: 9000000, gpu: 9000}},"
                 "{id: 2, owner: bob, outcome: ended, queue: q, start: '2026-03-01T12:00:00Z', "
                 "end: '2026-03-30T13:00:00Z', resources: {cpu: 9000000}}]}");
    assert_int_equal(total(&b, dear, &(struct bill_question){0}), INT64_MAX);
}

static void changed_limits_are_not_restored(void **state)
{
    (void)state;
    CLEANUP(book) struct usage_book b = {0};
    struct fake f = {.group = yaml("{id: red, quota: {limits: {gpu: 8}}}")};
    add_page(&b, "{after: 2, first: 1, items: [" HOUR(1, ann, red) "," HOUR(2, ann, red) "]}");
    assert_int_equal(enforce(&f, &b, MARCH, true), 0);
    limits_are(&f, "{\"gpu\":0,\"pods\":1}");
    (void)json_object_set_new(json_object_get(json_object_get(f.group, "quota"), "limits"), "gpu", json_integer(3));
    assert_int_equal(enforce(&f, &b, APRIL, true), 0);
    limits_are(&f, "{\"gpu\":3}"); /* gpu as the administrator set it, pods as before: no limit */
    json_decref(f.group);
}

static void lost_request_is_repeated(void **state)
{
    (void)state;
    CLEANUP(book) struct usage_book b = {0};
    struct fake f = {.group = yaml("{id: red, quota: {limits: {gpu: 8}}}"), .fail = ETIMEDOUT};
    add_page(&b, "{after: 2, first: 1, items: [" HOUR(1, ann, red) "," HOUR(2, ann, red) "]}");
    assert_int_equal(enforce(&f, &b, MARCH, true), -ETIMEDOUT);
    assert_int_equal(b.lowered_len, 1); /* it is unknown whether the patch was applied */
    f.fail = 0;
    assert_int_equal(enforce(&f, &b, MARCH, true), 0);
    limits_are(&f, "{\"gpu\":0,\"pods\":1}");
    assert_int_equal(enforce(&f, &b, APRIL, true), 0);
    limits_are(&f, "{\"gpu\":8}");
    json_decref(f.group);
}

static void command_line_is_checked(void **state)
{
    (void)state;
    static const struct {
        const char *argv[8];
        int rc;
    } rows[] = {
        {{"berth-bill", "--prices", "p", "--book", "b"},                       0      },
        {{"berth-bill", "--prices", "p"},                                      -EINVAL},
        {{"berth-bill", "--book", "b"},                                        -EINVAL},
        {{"berth-bill", "--prices", "p", "--book", "b", "--month", "2026-3"},  -EINVAL},
        {{"berth-bill", "--prices", "p", "--book", "b", "--month", "2026-13"}, -EINVAL},
        {{"berth-bill", "--prices", "p", "--book", "b", "--output", "xml"},    -EINVAL},
        {{"berth-bill", "--prices", "p", "--book", "b", "--really"},           -EINVAL},
        {{"berth-bill", "--help"},                                             0      },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bill_options o;
        struct berth_err err = {0};
        int argc = 0;
        while (argc < 8 && rows[i].argv[argc])
            argc++;
        if (bill_options_read(argc, (char *const *)rows[i].argv, &o, &err) != rows[i].rc)
            fail_msg("row %zu: %s", i, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_have_their_price),
        cmocka_unit_test(a_record_counts_once),
        cmocka_unit_test(book_survives_save_and_load),
        cmocka_unit_test(invalid_prices_are_rejected),
        cmocka_unit_test(money_text_has_two_decimals),
        cmocka_unit_test(bills_are_printed_in_three_forms),
        cmocka_unit_test(a_spent_budget_lowers_limits_until_the_next_month),
        cmocka_unit_test(a_floor_raises_no_limit),
        cmocka_unit_test(sums_saturate),
        cmocka_unit_test(changed_limits_are_not_restored),
        cmocka_unit_test(lost_request_is_repeated),
        cmocka_unit_test(command_line_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
