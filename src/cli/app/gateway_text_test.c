/* gateway_text_test.c - the configuration written for given services. tests/agent/gateway_test.sh checks it with the
 * programs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cli/app/gateway_text.h"

static const char services[] =
    "[{\"service\": \"web.ada\", \"endpoints\": ["
    "{\"name\": \"http\", \"protocol\": \"tcp\", \"instances\": ["
    "{\"instance\": 3, \"node\": \"n1\", \"address\": \"10.0.0.1\", \"port\": 10016, \"weight\": 100, \"ready\": true},"
    "{\"instance\": 4, \"node\": \"n2\", \"address\": \"fd00::2\", \"port\": 10016, \"weight\": 50, \"ready\": true},"
    "{\"instance\": 5, \"node\": \"n3\", \"address\": \"10.0.0.3\", \"port\": 10016, \"weight\": 100, \"ready\": false}]},"
    "{\"name\": \"dns\", \"protocol\": \"udp\", \"instances\": ["
    "{\"instance\": 3, \"node\": \"n1\", \"address\": \"10.0.0.1\", \"port\": 10017, \"weight\": 0, \"ready\": true}]}]}]";

static const struct {
    unsigned program;
    struct gateway_listener listener;
    const char *has, *not ; /* NULL: none */
} rows[] = {
    {0, {"web.ada", "http", "0.0.0.0:80"}, "server i3 10.0.0.1:10016 weight 100\n", "i5"        },
    {0, {"web.ada", "http", "0.0.0.0:80"}, "server i4 [fd00::2]:10016 weight 50\n", "mode tcp"  },
    {0, {"web.ada", NULL, "0.0.0.0:80"},   "mode http",                             NULL        },
    {0, {"web.ada", "dns", "0.0.0.0:53"},  "mode tcp",                              "retry-on"  },
    {0, {"gone.ada", NULL, "0.0.0.0:80"},  "bind 0.0.0.0:80",                       "server i"  },
    {1, {"web.ada", "http", "0.0.0.0:80"}, "server 10.0.0.1:10016 weight=100",      "10.0.0.3"  },
    {1, {"web.ada", "dns", "0.0.0.0:53"},  "listen 0.0.0.0:53 udp;",                "return 503"},
 /* all weights are 0 */
    {1, {"web.ada", "dns", "0.0.0.0:53"},  "server 10.0.0.1:10017 weight=1 ",       NULL        },
    {1, {"gone.ada", NULL, "0.0.0.0:80"},  "return 503;",                           "upstream"  },
};

static void listeners_forward_to_ready_instances(void **state)
{
    json_t *items = json_loads(services, 0, NULL);
    (void)state;
    assert_non_null(items);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(str) struct str text = {0};
        balancer_write(&text, rows[i].program, items, &rows[i].listener, 1);
        if (!strstr(text.at, rows[i].has) || (rows[i].not &&strstr(text.at, rows[i].not )))
            fail_msg("row %zu: should have '%s' and not '%s':\n%s", i, rows[i].has, rows[i].not ? rows[i].not : "",
                     text.at);
    }
    json_decref(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listeners_forward_to_ready_instances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
