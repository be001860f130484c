/* http_account_test.c - tests the bounds per address and per user. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/kit_test.h"

enum { ANSWER_BYTES = 1 << 20, READERS = 12 };

#define GET_AS(user) "GET / HTTP/1.1\r\nHost: h\r\nUser: " user "\r\n\r\n"

/* Takes the user from a header. */
static int64_t admit(void *ctx, struct http_request *x)
{
    struct kit *k = ctx;
    struct berth_err err;
    k->admitted++;
    http_set_data(x, k, kit_drop);
    if (http_set_user(x, http_header(x, "User"), &err) == 0)
        return 4 << 20;
    http_answer(x, 429, NULL, "text/plain", err.text, strlen(err.text));
    return -1;
}

static char byte_at(size_t i)
{
    return (char)('a' + i * 7 % 26);
}

static void answer_large(void *ctx, struct http_request *x)
{
    struct http_text text = {0};
    char piece[1000];
    kit_keep(ctx, x);
    for (size_t done = 0; done < ANSWER_BYTES;) {
        size_t n = ANSWER_BYTES - done < sizeof piece ? ANSWER_BYTES - done : sizeof piece;
        for (size_t i = 0; i < n; i++)
            piece[i] = byte_at(done + i);
        http_text_add(&text, piece, n);
        done += n;
    }
    http_answer_text(x, 200, NULL, "text/plain", &text);
}

/* Connects with a small receive buffer. */
static struct talk talk_narrow(const struct kit *k)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), bytes = 4096;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(http_server_port(k->server))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return (struct talk){.fd = fd};
}

static void large_text_arrives_completely(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(str) struct str body = {0};

    (void)state;
    kit_start(&k, (struct http_config){.admit = admit, .handle = answer_large});
    CLEANUP(talk) struct talk t = talk_new(&k);
    for (int round = 0; round < 3; round++) { /* all on one connection */
        talk_say(&k, &t, GET("/"));
        assert_int_equal(talk_answer(&k, &t, &body), 200);
        assert_int_equal(body.len, ANSWER_BYTES);
        for (size_t i = 0; i < body.len; i++)
            if (body.at[i] != byte_at(i))
                fail_msg("another byte at %zu", i);
    }
    talk_say(&k, &t, "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n" GET("/"));
    talk_hear(&k, &t, "Content-Length: 1048576");
    talk_say(&k, &t, "GET / HTTP/1.0\r\n\r\n");
    talk_hear_end(&k, &t);
    KIT_UNTIL(&k, http_server_busy(k.server) == 0);
    assert_int_equal(http_server_stats(k.server).bytes_held, 0);
}

/* Unread answers are held up to the bound; further requests of this user are rejected. */
static void unread_answers_of_a_user_are_bounded(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    struct talk slow[READERS];
    const size_t max = 4 << 20;
    size_t held = 0;

    (void)state;
    kit_start(&k, (struct http_config){.admit = admit, .handle = answer_large, .bytes_per_user_max = max});
    for (int i = 0; i < READERS; i++) {
        slow[i] = talk_narrow(&k);
        talk_say(&k, &slow[i], GET_AS("mallory"));
        KIT_UNTIL(&k, k.admitted == (unsigned)i + 1);
        for (int round = 0; round < 10; round++)
            kit_round(&k);
        held = http_server_stats(k.server).bytes_held > held ? http_server_stats(k.server).bytes_held : held;
    }
    assert_true(held > max / 2 && held <= max + ANSWER_BYTES);
    assert_true(http_server_stats(k.server).refused > 0);

    CLEANUP(talk) struct talk other = talk_new(&k);
    talk_say(&k, &other, GET_AS("alice"));
    assert_int_equal(talk_answer(&k, &other, NULL), 200);

    int refused = 0;
    for (int i = 0; i < READERS; i++) { /* a client that starts reading is served */
        refused += talk_answer(&k, &slow[i], NULL) == 429;
        talk_say(&k, &slow[i], GET_AS("mallory"));
        assert_int_equal(talk_answer(&k, &slow[i], NULL), 200);
        talk_cleanup(&slow[i]);
    }
    assert_in_range(refused, 1, READERS - 3);
    KIT_UNTIL(&k, http_server_busy(k.server) == 0);
    assert_int_equal(http_server_stats(k.server).bytes_held, 0);
}

/* The same for bodies that never end. */
static void bodies_of_a_user_are_bounded(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(mem) char *body = mem_zalloc(1 << 20);
    struct talk slow[8];
    int refused = 0;

    (void)state;
    kit_start(&k, (struct http_config){.admit = admit, .bytes_per_address_max = 4 << 20});
    for (size_t i = 0; i < ROWS(slow); i++) {
        slow[i] = talk_new(&k);
        talk_say(&k, &slow[i], "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n");
        uint64_t before = http_server_stats(k.server).bytes_held;
        talk_say_bytes(&k, &slow[i], body, 1 << 20);
        bool is_refused = false; /* otherwise the whole body is held */
        for (int round = 0; round < 1000000 && !is_refused; round++) {
            kit_round(&k);
            assert_true(http_server_stats(k.server).bytes_held <= 4 << 20);
            talk_listen(&slow[i]);
            is_refused = strstr(str_text(&slow[i].heard), " 429 ") != NULL;
            if (http_server_stats(k.server).bytes_held >= before + (1 << 20))
                break;
        }
        refused += is_refused;
    }
    assert_in_range(refused, 4, 5);
    for (size_t i = 0; i < ROWS(slow); i++)
        talk_cleanup(&slow[i]);
}

static void connections_of_a_user_are_bounded(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    struct talk talks[6];

    (void)state;
    kit_start(&k, (struct http_config){.admit = admit, .connections_per_user_max = 4});
    for (int i = 0; i < 6; i++) {
        talks[i] = talk_new(&k);
        talk_say(&k, &talks[i], GET_AS("mallory"));
        assert_int_equal(talk_answer(&k, &talks[i], NULL), i < 4 ? 200 : 429);
    }
    talk_say(&k, &talks[4], GET_AS("alice")); /* another user may use the connection */
    assert_int_equal(talk_answer(&k, &talks[4], NULL), 200);
    talk_close(&talks[0]);
    KIT_UNTIL(&k, http_server_stats(k.server).connections == 5);
    talk_say(&k, &talks[5], GET_AS("mallory"));
    assert_int_equal(talk_answer(&k, &talks[5], NULL), 200);
    for (int i = 0; i < 6; i++)
        talk_cleanup(&talks[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_text_arrives_completely),
        cmocka_unit_test(unread_answers_of_a_user_are_bounded),
        cmocka_unit_test(bodies_of_a_user_are_bounded),
        cmocka_unit_test(connections_of_a_user_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
