/* selector.c - parses and matches selectors. */
#include "kube/object/selector.h"

static bool operator_find(struct proto_text word, enum berth_match *ret)
{
    static const struct {
        const char *word;
        enum berth_match match;
    } rows[] = {
        {"In",           BERTH_IN        },
        {"NotIn",        BERTH_NOT_IN    },
        {"Exists",       BERTH_EXISTS    },
        {"DoesNotExist", BERTH_NOT_EXISTS},
        {"Gt",           BERTH_GT        },
        {"Lt",           BERTH_LT        },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (proto_is(word, rows[i].word)) {
            *ret = rows[i].match;
            return true;
        }
    return false;
}

static bool values_valid(enum berth_match match, const struct kube_texts *values)
{
    int64_t number;
    switch (match) {
    case BERTH_IN:
    case BERTH_NOT_IN: return values->len > 0;
    case BERTH_EXISTS:
    case BERTH_NOT_EXISTS: return values->len == 0;
    default: return values->len == 1 && str_parse_i64(values->at[0], &number);
    }
}

/* Parses LabelSelectorRequirement or NodeSelectorRequirement, which have the same encoding. False: invalid. */
static bool expr_read(struct kube_decoder *in, const struct proto_field *f, struct berth_expr *ret)
{
    struct berth_expr e = {.key = ""};
    struct kube_texts values = {0};
    bool known = false;
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        switch (x.number) {
        case 1: e.key = kube_text(in, &x); break;
        case 2: known = operator_find(proto_text(&x), &e.match); break;
        case 3: kube_push(in->arena, &values, kube_text(in, &x)); break;
        default: break;
        }
    in->bad |= r.bad;
    if (!known || !*e.key || !values_valid(e.match, &values))
        return false;
    e.values = values.at;
    e.values_len = values.len;
    *ret = e;
    return true;
}

static struct berth_expr expr_equal(struct arena *arena, const char *key, const char *value)
{
    const char **values = arena_alloc(arena, sizeof *values);
    values[0] = value;
    return (struct berth_expr){key, BERTH_IN, values, 1};
}

struct kube_selector kube_selector_read(struct kube_decoder *in, const struct proto_field *f)
{
    struct kube_selector s = {.present = true};
    struct kube_labels labels = {0};
    struct berth_expr e;
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x)) {
        if (x.number == 1) {
            kube_label(in, &x, &labels);
        } else if (x.number == 2) {
            bool known = expr_read(in, &x, &e) && e.match != BERTH_GT && e.match != BERTH_LT;
            s.never |= !known;
            if (known)
                kube_push(in->arena, &s.exprs, e);
        }
    }
    for (size_t i = 0; i < labels.len; i++)
        kube_push(in->arena, &s.exprs, expr_equal(in->arena, labels.at[i].key, labels.at[i].value));
    in->bad |= r.bad;
    return s;
}

void kube_selector_add(struct arena *arena, struct kube_selector *s, const char *key, const char *value)
{
    for (size_t i = 0; i < s->exprs.len; i++) {
        const struct berth_expr *e = &s->exprs.at[i];
        if (e->match == BERTH_IN && e->values_len == 1 && strcmp(e->key, key) == 0 && strcmp(e->values[0], value) == 0)
            return;
    }
    kube_push(arena, &s->exprs, expr_equal(arena, key, value));
}

static bool expr_holds(const struct berth_expr *e, const char *value)
{
    int64_t is, than;
    bool among = false;
    for (size_t i = 0; value && i < e->values_len; i++)
        among |= strcmp(e->values[i], value) == 0;
    switch (e->match) {
    case BERTH_IN: return among;
    case BERTH_NOT_IN: return !among;
    case BERTH_EXISTS: return value != NULL;
    case BERTH_NOT_EXISTS: return value == NULL;
    case BERTH_GT:
    case BERTH_LT:
        if (!value || !str_parse_i64(value, &is) || !str_parse_i64(e->values[0], &than))
            return false;
        return e->match == BERTH_GT ? is > than : is < than;
    }
    return false;
}

static bool exprs_hold(const struct berth_expr *at, size_t len, const struct kube_labels *labels)
{
    for (size_t i = 0; i < len; i++)
        if (!expr_holds(&at[i], kube_labels_find(labels, at[i].key)))
            return false;
    return true;
}

bool kube_selector_matches(const struct kube_selector *s, const struct kube_labels *labels)
{
    return s->present && !s->never && exprs_hold(s->exprs.at, s->exprs.len, labels);
}

/* ---- node selectors --------------------------------------------------------------------------------------------- */

void kube_term_read(struct kube_decoder *in, const struct proto_field *f, int32_t weight, struct kube_terms *to)
{
    struct kube_exprs exprs = {0};
    struct berth_expr e;
    bool never = false;
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x)) {
        if (x.number != 1 && x.number != 2)
            continue;
        bool known = expr_read(in, &x, &e);
        if (known && x.number == 2) {
            known = strcmp(e.key, "metadata.name") == 0 && e.match <= BERTH_NOT_IN && e.values_len == 1;
            e.key = KUBE_NAME_LABEL;
        }
        never |= !known;
        if (known)
            kube_push(in->arena, &exprs, e);
    }
    in->bad |= r.bad;
    if (!never && exprs.len > 0)
        kube_push(in->arena, to, ((struct berth_term){exprs.at, exprs.len, weight}));
}

void kube_terms_read(struct kube_decoder *in, const struct proto_field *f, struct kube_terms *to)
{
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        if (x.number == 1)
            kube_term_read(in, &x, 0, to);
    in->bad |= r.bad;
    if (to->len == 0) /* a selector without valid terms matches nothing */
        kube_push(in->arena, to, (struct berth_term){0});
}

bool kube_terms_match(const struct kube_terms *terms, const struct kube_labels *labels)
{
    for (size_t i = 0; i < terms->len; i++)
        if (terms->at[i].exprs_len > 0 && exprs_hold(terms->at[i].exprs, terms->at[i].exprs_len, labels))
            return true;
    return terms->len == 0;
}

static bool same_expr(const struct berth_expr *a, const struct berth_expr *b)
{
    if (a->match != b->match || a->values_len != b->values_len || strcmp(a->key, b->key) != 0)
        return false;
    for (size_t i = 0; i < a->values_len; i++)
        if (strcmp(a->values[i], b->values[i]) != 0)
            return false;
    return true;
}

static struct berth_term term_both(struct arena *arena, const struct berth_term *a, const struct berth_term *b)
{
    struct kube_exprs exprs = {0};
    for (size_t i = 0; i < a->exprs_len; i++)
        kube_push(arena, &exprs, a->exprs[i]);
    for (size_t i = 0; i < b->exprs_len; i++) {
        bool there = false;
        for (size_t j = 0; j < a->exprs_len; j++)
            there |= same_expr(&a->exprs[j], &b->exprs[i]);
        if (!there)
            kube_push(arena, &exprs, b->exprs[i]);
    }
    return (struct berth_term){exprs.at, exprs.len, 0};
}

bool kube_terms_both(struct arena *arena, const struct kube_terms *a, const struct kube_terms *b, struct kube_terms *to)
{
    struct kube_terms both = {0};
    if (a->len == 0 || b->len == 0) {
        *to = a->len ? *a : *b;
        return true;
    }
    if (a->len * b->len > BERTH_LIST_MAX)
        return false;
    for (size_t i = 0; i < a->len; i++)
        for (size_t j = 0; j < b->len; j++)
            if (a->at[i].exprs_len && b->at[j].exprs_len) {
                struct berth_term term = term_both(arena, &a->at[i], &b->at[j]);
                if (term.exprs_len > BERTH_LIST_MAX)
                    return false;
                kube_push(arena, &both, term);
            }
    if (both.len == 0)
        kube_push(arena, &both, (struct berth_term){0});
    *to = both;
    return true;
}

void kube_terms_merge(struct arena *arena, struct kube_terms *terms)
{
    struct kube_terms merged = {0};
    struct kube_texts values = {0};
    struct berth_term *open = NULL;
    for (size_t i = 0; i < terms->len; i++) {
        const struct berth_term *t = &terms->at[i];
        const struct berth_expr *e = t->exprs;
        bool single = t->exprs_len == 1 && e->match == BERTH_IN;
        if (single && open && strcmp(open->exprs->key, e->key) == 0 && values.len + e->values_len <= BERTH_LIST_MAX) {
            for (size_t v = 0; v < e->values_len; v++) {
                bool there = v == 0 && values.len && strcmp(values.at[values.len - 1], e->values[v]) == 0;
                if (!there)
                    kube_push(arena, &values, e->values[v]);
            }
            struct berth_expr *all = arena_dup(arena, e, sizeof *e);
            all->values = values.at;
            all->values_len = values.len;
            open->exprs = all;
            continue;
        }
        kube_push(arena, &merged, *t);
        open = single ? &merged.at[merged.len - 1] : NULL;
        values = (struct kube_texts){0};
        for (size_t v = 0; single && v < e->values_len; v++)
            kube_push(arena, &values, e->values[v]);
    }
    *terms = merged;
}
