/* sqlite_kill_test.c - kills a writing process with SIGKILL, repeatedly: acknowledged data must survive. */
#include "store/store_test.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/hash.h"

enum { ROUNDS = 20, FLIGHT = 24 };

/* Message of the child for each transaction that was acknowledged. */
struct ack_message {
    uint64_t number, revision, seq;
};

struct child {
    struct store *store;
    int pipe;
    uint64_t next;
    struct flying {
        struct child *child;
        uint64_t number;
    } flying[FLIGHT];
};

static void send_ack(void *ctx, const struct store_result *result);

static void write_next(struct child *c, struct flying *f)
{
    char key[16], value[64];
    f->child = c;
    f->number = c->next++;
    (void)snprintf(key, sizeof key, "k/%02" PRIu64, f->number % 50);
    (void)snprintf(value, sizeof value, "%" PRIu64, f->number);
    struct store_op ops[] = {
        {key, TEXT(value), f->number % 9 == 0},
        PUT("last", value)
    };
    if (store_submit(c->store, &(struct store_txn){.ops = ops, .ops_len = 2, .record = TEXT(value)}, send_ack, f,
                     NULL) < 0)
        _exit(3);
}

static void send_ack(void *ctx, const struct store_result *result)
{
    struct flying *f = ctx;
    struct ack_message ack_message = {f->number, result->revision, result->log_seq};
    if (result->rc != 0 || write(f->child->pipe, &ack_message, sizeof ack_message) != sizeof ack_message)
        _exit(4);
    write_next(f->child, f);
}

static void child_main(const char *dir, int pipe, uint64_t first)
{
    struct child c = {.pipe = pipe, .next = first};
    if (store_sqlite_open(dir, &(struct store_options){.create = true}, &c.store, NULL) < 0)
        _exit(2);
    for (size_t i = 0; i < FLIGHT; i++)
        write_next(&c, &c.flying[i]);
    for (unsigned n = 0;; n++) {
        uint64_t now = store_revision(c.store);
        if (n % 64 == 63 && now > 10 && store_compact(c.store, now - 10, NULL) < 0)
            _exit(5);
        (void)store_pump(c.store);
    }
}

struct seen {
    uint64_t words_len, first_seq, found, next;
    struct ack_message *words;
    struct store *store;
};

static int check_record(void *ctx, const struct store_record *r)
{
    struct seen *s = ctx;
    char text[24];
    memset(text, 0, sizeof text);
    memcpy(text, r->record.at, r->record.len < sizeof text ? r->record.len : sizeof text - 1);
    uint64_t number = strtoull(text, NULL, 10);
    if (number >= s->next)
        s->next = number + 1;
    if (s->found < s->words_len && s->words[s->found].seq == r->seq) {
        assert_int_equal(s->words[s->found].number, number);
        assert_int_equal(s->words[s->found].revision, r->revision);
        s->found++;
    }
    return 0;
}

static void sigkill_loses_no_acknowledged_data(void **state)
{
    (void)state;
    char dir[256];
    struct seen seen = {.words = mem_array(1 << 20, sizeof(struct ack_message))};
    uint64_t revision = 0;
    folder_make(dir);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            (void)close(fds[0]);
            child_main(dir, fds[1], seen.next);
        }
        (void)close(fds[1]);
        /* Killed after some number of messages, in any state; the rest of the pipe counts, too. */
        uint64_t enough = 1 + hash_u64(round) % 400, words = 0;
        for (struct ack_message ack_message; read(fds[0], &ack_message, sizeof ack_message) == sizeof ack_message;) {
            assert_true(words < 1 << 20);
            seen.words[words++] = ack_message;
            if (words == enough)
                assert_int_equal(kill(child, SIGKILL), 0);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        (void)close(fds[0]);

        struct store *s = sqlite_open_ok(dir); /* verifies everything */
        assert_true(store_revision(s) >= seen.words[words - 1].revision);
        assert_true(store_revision(s) > revision);
        revision = store_revision(s);
        seen.words_len = words;
        seen.found = 0;
        assert_int_equal(store_log(s, seen.words[0].seq, check_record, &seen, NULL), 0);
        assert_int_equal(seen.found, words);
        store_close(s);
    }
    mem_free(seen.words);
    folder_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sigkill_loses_no_acknowledged_data)};
    return cmocka_run_group_tests_name("kill", tests, NULL, NULL);
}
