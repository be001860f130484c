/* functions.c - the functions for formulas. They accept only numbers, and no strings that Lua could convert. */
#include "formula/functions.h"

#include <lauxlib.h>

#include "base/math.h"

static double number(lua_State *l, int at)
{
    if (lua_type(l, at) != LUA_TNUMBER)
        return (double)luaL_error(l, "expected a number, not %s", luaL_typename(l, at));
    return lua_tonumber(l, at);
}

static int return_number(lua_State *l, double x)
{
    lua_pushnumber(l, x);
    return 1;
}

static int of_exp(lua_State *l)
{
    return return_number(l, math_exp(number(l, 1)));
}

static int of_log(lua_State *l)
{
    return return_number(l, math_log(number(l, 1)));
}

static int of_log10(lua_State *l)
{
    return return_number(l, math_log10(number(l, 1)));
}

static int of_log2(lua_State *l)
{
    return return_number(l, math_log2(number(l, 1)));
}

static int of_pow(lua_State *l)
{
    return return_number(l, math_pow(number(l, 1), number(l, 2)));
}

static int of_sqrt(lua_State *l)
{
    return return_number(l, math_sqrt(number(l, 1)));
}

static double floor_of(double x)
{
    if (!(x > -0x1p52 && x < 0x1p52))
        return x; /* already a whole number, infinite, or NaN */
    double whole = (double)(long long)x;
    return whole > x ? whole - 1 : whole;
}

static int of_floor(lua_State *l)
{
    return return_number(l, floor_of(number(l, 1)));
}

static int of_ceil(lua_State *l)
{
    return return_number(l, -floor_of(-number(l, 1)));
}

static int of_abs(lua_State *l)
{
    double x = number(l, 1);
    return return_number(l, x < 0 ? -x : x);
}

static int of_min(lua_State *l)
{
    double least = number(l, 1);
    for (int i = 2; i <= lua_gettop(l); i++) {
        double x = number(l, i);
        least = x < least ? x : least;
    }
    return return_number(l, least);
}

static int of_max(lua_State *l)
{
    double most = number(l, 1);
    for (int i = 2; i <= lua_gettop(l); i++) {
        double x = number(l, i);
        most = x > most ? x : most;
    }
    return return_number(l, most);
}

static const luaL_Reg all[] = {
    {"exp",   of_exp  },
    {"log",   of_log  },
    {"log10", of_log10},
    {"log2",  of_log2 },
    {"pow",   of_pow  },
    {"sqrt",  of_sqrt },
    {"floor", of_floor},
    {"ceil",  of_ceil },
    {"abs",   of_abs  },
    {"min",   of_min  },
    {"max",   of_max  },
};
enum { LEN = sizeof all / sizeof *all };

const char *formula_function_name(size_t i)
{
    return i < LEN ? all[i].name : NULL;
}

lua_CFunction formula_function_at(size_t i)
{
    return all[i].func;
}
