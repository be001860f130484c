/* target_test.c - tests decoding and rejection of request targets. */
#include "net/http/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))

/* Writes "path|name=value|name=value", or "!error". */
static void describe(const char *raw, struct str *to)
{
    CLEANUP(mem) char *room = mem_alloc(target_room(raw));
    struct request_target t = {.text = "untouched", .params = 77};
    const char *why = NULL;

    if (!target_parse(raw, room, &t, &why)) {
        assert_string_equal(t.text, "untouched");
        assert_int_equal(t.params, 77);
        str_addf(to, "!%s", why);
        return;
    }
    assert_null(why);
    const char *p = t.text;
    str_add(to, p);
    for (size_t i = 0; i < t.params; i++) {
        const char *name = p + strlen(p) + 1, *value = name + strlen(name) + 1;
        str_addf(to, "|%s=%s", name, value);
        assert_ptr_equal(target_param(&t, name), value);
        p = value;
    }
    assert_true((size_t)(p + strlen(p) + 1 - room) <= target_room(raw));
    assert_null(target_param(&t, "no such"));
}

static void targets_are_decoded_or_rejected(void **state)
{
    static const struct {
        const char *raw, *want;
    } rows[] = {
        {"/",                  "/"                                     },
        {"/v1/jobs",           "/v1/jobs"                              },
        {"/a%20b%2Fc%c3%a4",   "/a b/c\xc3\xa4"                        },
        {"/a+b",               "/a+b"                                  },
        {"/\xc3\xa4",          "/\xc3\xa4"                             },
        {"/../x//y",           "/../x//y"                              },
        {"/a?",                "/a"                                    },
        {"/a?b",               "/a|b="                                 },
        {"/a?b=",              "/a|b="                                 },
        {"/a?b=1&c=2&d",       "/a|b=1|c=2|d="                         },
        {"/a?&&b=1&&",         "/a|b=1"                                },
        {"/a?b=1=2?3",         "/a|b=1=2?3"                            },
        {"/a?b+c=d+%2B%26%3d", "/a|b c=d +&="                          },
        {"/a?b=%0A",           "/a|b=\n"                               },
        {"/a?%62=1",           "/a|b=1"                                },
        {"",                   "!the target of the request does "      },
        {"*",                  "!the target of the request does "      },
        {"http://h/a",         "!the target of the request does "      },
        {"/a#b",               "!the target of the request has "       },
        {"/a?b#c",             "!the target of the request has "       },
        {"/%",                 "!a percent sign in the path"           },
        {"/%4",                "!a percent sign in the path"           },
        {"/%4g",               "!a percent sign in the path"           },
        {"/%g4",               "!a percent sign in the path"           },
        {"/%2?0",              "!a percent sign in the path"           },
        {"/a%00",              "!a percent sign in the path"           },
        {"/a%7f",              "!the path has control"                 },
        {"/a%0a",              "!the path has control"                 },
        {"/a b",               "!the target of the request has a blank"},
        {"/a?b=c d",           "!the target of the request has a blank"},
        {"/a?b=\t",            "!the target of the request has a blank"},
        {"/a\x7f",             "!the target of the request has a blank"},
        {"/a%c2%80",           "!the path has control"                 },
        {"/a%ff",              "!the path is not UTF-8"                },
        {"/%c0%af",            "!the path is not UTF-8"                },
        {"/%ed%a0%80",         "!the path is not UTF-8"                },
        {"/a?b=%",             "!a percent sign in the query"          },
        {"/a?b=%4&c=1",        "!a percent sign in the query"          },
        {"/a?b=%00",           "!a percent sign in the query"          },
        {"/a?%zz=1",           "!a percent sign in the query"          },
        {"/a?b=%ff",           "!the query is not UTF-8"               },
        {"/a?%ff=b",           "!the query is not UTF-8"               },
        {"/a?=b",              "!a parameter of the query has"         },
        {"/a?b=1&b=2",         "!a parameter of the query is"          },
        {"/a?b=1&c&%62",       "!a parameter of the query is"          },
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(str) struct str found = {0};
        describe(rows[i].raw, &found);
        const char *text = str_text(&found), *want = rows[i].want;
        bool same = want[0] == '!' ? strstr(text, want) == text : strcmp(text, want) == 0;
        if (!same)
            fail_msg("%s: %s", rows[i].raw, text);
    }
}

static void parameters_are_bounded(void **state)
{
    CLEANUP(str) struct str raw = {0}, found = {0};

    (void)state;
    str_add(&raw, "/?");
    for (int i = 0; i < TARGET_PARAMS_MAX; i++)
        str_addf(&raw, "p%d&", i);
    describe(raw.at, &found);
    assert_non_null(strstr(found.at, "|p63="));
    str_add(&raw, "more");
    str_clear(&found);
    describe(raw.at, &found);
    assert_string_equal(found.at, "!the query has too many parameters");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_are_decoded_or_rejected),
        cmocka_unit_test(parameters_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
