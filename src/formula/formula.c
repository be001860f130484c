/* formula.c - one Lua state per formula: its sandbox, compilation and execution. */
#include "formula/formula.h"

#include <errno.h>
#include <lauxlib.h>
#include <locale.h>
#include <lua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "formula/functions.h"
#include "formula/scan.h"

enum { ARGUMENTS_MAX = 100, WORDS = 3 };

/* Words that need no `attr` in front. */
static const char *const words[WORDS] = {"type", "class", "network"};

/* What a name in the formula refers to. */
enum argument_kind { ARG_FACTOR, ARG_RAW, ARG_WORD, ARG_ATTR, ARG_FUNCTION };

struct argument {
    enum argument_kind kind;
    size_t at; /* index of the factor, raw column, word or function */
};

static const char *const raw_names[] = {"waited", "runtime", "pods", "processors", "created"};
enum { RAWS = sizeof raw_names / sizeof *raw_names };

struct formula {
    lua_State *l;
    char *name;
    locale_t c_locale; /* strings compare by their bytes, whatever the program's locale is */
    size_t bytes;      /* allocated by Lua */
    struct argument arguments[ARGUMENTS_MAX];
    size_t arguments_len;
    int function, fixed; /* in the registry: the function, and the arguments that are equal for every row */
    /* Of the current batch. */
    const struct berth_factors *in;
    size_t row;
    int64_t *keys;
    const char *const *columns[WORDS]; /* NULL: no row has such a word */
};

/* ---- the sandbox ------------------------------------------------------------------------------------------------ */

static void *allocate(void *ctx, void *old, size_t old_size, size_t size)
{
    struct formula *f = ctx;
    size_t had = old ? old_size : 0;
    if (size == 0) {
        mem_free(old);
        f->bytes -= had;
        return NULL;
    }
    if (size > had && f->bytes + (size - had) > FORMULA_MEMORY_MAX)
        return NULL; /* Lua reports it */
    void *p = mem_resize(old, size, 1);
    f->bytes = f->bytes - had + size;
    return p;
}

static struct formula *formula_of(lua_State *l)
{
    void *f = NULL;
    (void)lua_getallocf(l, &f);
    return f;
}

static void steps_exceeded(lua_State *l, lua_Debug *at)
{
    (void)at;
    luaL_error(l, "the formula takes more than %d steps", (int)FORMULA_STEPS_MAX);
}

static int unknown_name(lua_State *l)
{
    return luaL_error(l, "\"%s\" is not available in a formula",
                      lua_type(l, 2) == LUA_TSTRING ? lua_tostring(l, 2) : "?");
}

static int reject_assignment(lua_State *l)
{
    return luaL_error(l, "\"%s\" cannot be set; write local %s = ...",
                      lua_type(l, 2) == LUA_TSTRING ? lua_tostring(l, 2) : "?",
                      lua_type(l, 2) == LUA_TSTRING ? lua_tostring(l, 2) : "x");
}

/* attr["x"] or attr.x; "" if the row has no such word. */
static int attribute(lua_State *l)
{
    struct formula *f = formula_of(l);
    if (lua_type(l, 2) != LUA_TSTRING)
        return luaL_error(l, "attr: expected a name as the key, not %s", luaL_typename(l, 2));
    const char *name = lua_tostring(l, 2), *found = "";
    for (size_t i = 0; i < f->in->word_names_len; i++)
        if (strcmp(f->in->word_names[i], name) == 0)
            found = f->in->words[i][f->row];
    lua_pushstring(l, found);
    return 1;
}

/* Pushes an object without content: reads call `read`, writes are rejected. */
static void push_proxy(lua_State *l, lua_CFunction read)
{
    (void)lua_newuserdatauv(l, 0, 0);
    lua_createtable(l, 0, 2);
    lua_pushcfunction(l, read);
    lua_setfield(l, -2, "__index");
    lua_pushcfunction(l, reject_assignment);
    lua_setfield(l, -2, "__newindex");
    lua_setmetatable(l, -2);
}

/* Allows math.log as well as log. */
static int math_member(lua_State *l)
{
    for (size_t i = 0; lua_type(l, 2) == LUA_TSTRING && formula_function_name(i); i++)
        if (strcmp(formula_function_name(i), lua_tostring(l, 2)) == 0) {
            lua_pushcfunction(l, formula_function_at(i));
            return 1;
        }
    return unknown_name(l);
}

/* ---- compiling -------------------------------------------------------------------------------------------------- */

/* Declares a name as a local variable, whose value is passed by position with each call; only if the text contains the
 * name. */
static void argument_add(struct formula *f, struct str *head, const char *text, const char *name,
                         struct argument argument)
{
    if (!scan_contains_word(text, name) || f->arguments_len == ARGUMENTS_MAX)
        return;
    str_addf(head, "%s%s", f->arguments_len ? "," : "local ", name);
    f->arguments[f->arguments_len++] = argument;
}

static void arguments_find(struct formula *f, const char *text, struct str *head)
{
    const char *name;
    for (size_t i = 0; (name = formula_function_name(i)); i++)
        argument_add(f, head, text, name, (struct argument){ARG_FUNCTION, i});
    argument_add(f, head, text, "math", (struct argument){ARG_FUNCTION, SIZE_MAX});
    for (size_t i = 0; (name = berth_factor_at(i, NULL)); i++)
        argument_add(f, head, text, name, (struct argument){ARG_FACTOR, i});
    for (size_t i = 0; i < RAWS; i++)
        argument_add(f, head, text, raw_names[i], (struct argument){ARG_RAW, i});
    for (size_t i = 0; i < WORDS; i++)
        argument_add(f, head, text, words[i], (struct argument){ARG_WORD, i});
    argument_add(f, head, text, "attr", (struct argument){ARG_ATTR, 0});
    str_add(head, f->arguments_len ? "=... " : "");
}

struct formula_source {
    const char *parts[3];
    size_t at;
};

static const char *read_part(lua_State *l, void *ctx, size_t *ret_len)
{
    struct formula_source *s = ctx;
    (void)l;
    if (s->at == 3)
        return NULL;
    const char *part = s->parts[s->at++];
    *ret_len = strlen(part);
    return *ret_len ? part : read_part(l, ctx, ret_len);
}

/* Sets the error. The chunk is named "line", so that Lua's messages begin with "line:2: ...". */
static int set_lua_error(const struct formula *f, const char *message, struct berth_err *err)
{
    const char *rest = message;
    if (strcmp(message, "not enough memory") == 0)
        return err_set(err, EINVAL, "%s: the formula needs more than %d KiB of memory", f->name,
                       FORMULA_MEMORY_MAX / 1024);
    if (strncmp(rest, "line:", 5) == 0) {
        char *end;
        unsigned long line = strtoul(rest + 5, &end, 10);
        if (*end == ':')
            return err_set(err, EINVAL, "%s: line %lu%s", f->name, line, end);
    }
    return err_set(err, EINVAL, "%s: %s", f->name, message);
}

/* Leaves the function, or the error message, on the stack. */
static int compile(struct formula *f, const char *head, const char *before, const char *text)
{
    struct formula_source s = {
        .parts = {head, before, text}
    };
    return lua_load(f->l, read_part, &s, "=line", "t");
}

/* Compiles the text as an expression, or else as the body of a function. */
static int load_text(struct formula *f, const char *head, const char *text, struct berth_err *err)
{
    if (compile(f, head, "return ", text) == LUA_OK)
        return 0;
    if (compile(f, head, "", text) == LUA_OK) {
        lua_remove(f->l, -2);
        return 0;
    }
    const char *message = lua_tostring(f->l, scan_contains_word(text, "return") ? -1 : -2);
    return set_lua_error(f, message ? message : "the formula cannot be read", err);
}

/* Empties the function's environment, and stores all arguments that are equal for every row. */
static int prepare(lua_State *l)
{
    struct formula *f = formula_of(l);
    push_proxy(l, unknown_name);
    (void)lua_setupvalue(l, 1, 1); /* the first upvalue of a chunk is _ENV */
    lua_settop(l, 1);
    f->function = luaL_ref(l, LUA_REGISTRYINDEX);
    lua_createtable(l, ARGUMENTS_MAX, 0);
    for (size_t i = 0; i < f->arguments_len; i++) {
        const struct argument *a = &f->arguments[i];
        if (a->kind == ARG_FUNCTION && a->at != SIZE_MAX)
            lua_pushcfunction(l, formula_function_at(a->at));
        else if (a->kind == ARG_FUNCTION)
            push_proxy(l, math_member);
        else if (a->kind == ARG_ATTR)
            push_proxy(l, attribute);
        else
            lua_pushnil(l);
        lua_rawseti(l, -2, (lua_Integer)i + 1);
    }
    f->fixed = luaL_ref(l, LUA_REGISTRYINDEX);
    return 0;
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

static int64_t key_of(double x)
{
    double milli = x * 1000;
    if (milli >= 9e18)
        return (int64_t)9e18;
    if (milli <= -9e18)
        return -(int64_t)9e18;
    return (int64_t)(milli < 0 ? milli - 0.5 : milli + 0.5);
}

static void push_argument(struct formula *f, const struct argument *a, int fixed)
{
    const double *const raw[RAWS] = {f->in->waited, f->in->runtime, f->in->pods, f->in->size, f->in->created};
    switch (a->kind) {
    case ARG_FACTOR: lua_pushnumber(f->l, (double)f->in->columns[a->at][f->row] / 1000000); break;
    case ARG_RAW: lua_pushnumber(f->l, raw[a->at][f->row]); break;
    case ARG_WORD: lua_pushstring(f->l, f->columns[a->at] ? f->columns[a->at][f->row] : ""); break;
    case ARG_ATTR:
    case ARG_FUNCTION: lua_pushvalue(f->l, fixed); break;
    }
}

/* Puts the arguments that are equal for every row on the stack, from 1 on, and then computes all rows. */
static int run_rows(lua_State *l)
{
    struct formula *f = formula_of(l);
    int len = (int)f->arguments_len;
    lua_settop(l, 0);
    lua_rawgeti(l, LUA_REGISTRYINDEX, f->fixed);
    for (int i = 1; i <= len; i++)
        lua_rawgeti(l, 1, i);
    lua_rawgeti(l, LUA_REGISTRYINDEX, f->function);
    int function = len + 2;
    luaL_checkstack(l, len + 8, NULL);
    for (f->row = 0; f->row < f->in->len; f->row++) {
        lua_pushvalue(l, function);
        for (int i = 0; i < len; i++)
            push_argument(f, &f->arguments[i], i + 2);
        lua_sethook(l, steps_exceeded, LUA_MASKCOUNT, FORMULA_STEPS_MAX);
        lua_call(l, len, 1);
        if (lua_type(l, -1) != LUA_TNUMBER)
            return luaL_error(l, "the formula returns %s, not a number", luaL_typename(l, -1));
        double x = lua_tonumber(l, -1);
        if (x != x)
            return luaL_error(l, "the result is not a number (0/0, or the logarithm or root of a negative number)");
        f->keys[f->row] = key_of(x);
        lua_pop(l, 1);
    }
    return 0;
}

static int fail_row(struct formula *f, struct berth_err *err)
{
    const struct berth_factors *in = f->in;
    size_t i = f->row;
    int rc = set_lua_error(f, lua_type(f->l, -1) == LUA_TSTRING ? lua_tostring(f->l, -1) : "the formula failed", err);
    if (!err || i >= in->len)
        return rc;
    char *end = err->text + strlen(err->text);
    (void)snprintf(end, sizeof err->text - (size_t)(end - err->text),
                   " (for waited %.0f, runtime %.0f, pods %.0f, processors %.0f)", in->waited[i], in->runtime[i],
                   in->pods[i], in->size[i]);
    return rc;
}

int formula_run(void *formula, const struct berth_factors *in, int64_t *keys, struct berth_err *err)
{
    struct formula *f = formula;
    locale_t before = uselocale(f->c_locale);
    int64_t *got = mem_array(in->len + 1, sizeof *got);
    f->in = in;
    f->row = 0;
    f->keys = got;
    for (size_t w = 0; w < WORDS; w++) {
        f->columns[w] = NULL;
        for (size_t i = 0; i < in->word_names_len; i++)
            if (strcmp(in->word_names[i], words[w]) == 0)
                f->columns[w] = in->words[i];
    }
    lua_settop(f->l, 0);
    lua_pushcfunction(f->l, run_rows);
    int rc = lua_pcall(f->l, 0, 0, 0) == LUA_OK ? 0 : fail_row(f, err);
    lua_sethook(f->l, NULL, 0, 0);
    lua_settop(f->l, 0);
    if (rc == 0)
        memcpy(keys, got, in->len * sizeof *keys);
    mem_free(got);
    f->in = NULL;
    (void)uselocale(before);
    return rc;
}

/* ---- construction ----------------------------------------------------------------------------------------------- */

enum { TRIES = 4 };

/* Runs the formula with all inputs at their minimum, at their maximum, and in between. */
static int run_samples(struct formula *f, struct berth_err *err)
{
    static const int32_t values[TRIES] = {0, 1000000, 500000, 123456};
    static const double waited[TRIES] = {0, 604800, 3600, 59}, runtime[TRIES] = {1, 2592000, 600, 7},
                        pods[TRIES] = {1, 1000, 8, 3}, size[TRIES] = {0, 8000, 64, 0.5},
                        created[TRIES] = {1, 4e9, 1.8e9, 1.7e9};
    static const char *const some[TRIES] = {"", "a", "llm", "training"}, *const *const columns[WORDS] = {some, some,
                                                                                                         some};
    const char *names[64];
    const int32_t *factor_columns[64];
    int64_t keys[TRIES];
    struct berth_factors in = {.len = TRIES,
                               .names = names,
                               .columns = factor_columns,
                               .word_names = words,
                               .word_names_len = WORDS,
                               .words = columns,
                               .waited = waited,
                               .runtime = runtime,
                               .pods = pods,
                               .size = size,
                               .created = created};
    for (size_t i = 0; i < 64 && berth_factor_at(i, NULL); i++, in.names_len++) {
        names[i] = berth_factor_at(i, NULL);
        factor_columns[i] = values;
    }
    return formula_run(f, &in, keys, err);
}

static int build(struct formula *f, const char *text, struct berth_err *err)
{
    CLEANUP(str) struct str head = {0};
    if (!f->l)
        return err_set(err, ENOMEM, "%s: not enough memory", f->name);
    int rc = scan_check(text, err);
    if (rc)
        return err_prefix(err, "%s", f->name);
    arguments_find(f, text, &head);
    rc = load_text(f, str_text(&head), text, err);
    if (rc)
        return rc;
    lua_pushcfunction(f->l, prepare);
    lua_insert(f->l, -2);
    if (lua_pcall(f->l, 1, 0, 0) != LUA_OK)
        return set_lua_error(f, "not enough memory", err);
    return run_samples(f, err);
}

int formula_new(const char *text, const char *name, struct formula **ret, struct berth_err *err)
{
    if (!text || !*text)
        return err_set(err, EINVAL, "%s: the formula is empty", name);
    if (strlen(text) > FORMULA_TEXT_MAX)
        return err_set(err, EINVAL, "%s: the formula is longer than %d bytes", name, FORMULA_TEXT_MAX);
    struct formula *f = mem_zalloc(sizeof *f);
    f->name = mem_strdup(name);
    f->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    f->l = lua_newstate(allocate, f);
    locale_t before = uselocale(f->c_locale);
    int rc = build(f, text, err);
    (void)uselocale(before);
    if (rc) {
        formula_free(f);
        return rc;
    }
    *ret = f;
    return 0;
}

void formula_free(struct formula *f)
{
    if (!f)
        return;
    if (f->l)
        lua_close(f->l);
    freelocale(f->c_locale);
    mem_free(f->name);
    mem_free(f);
}
