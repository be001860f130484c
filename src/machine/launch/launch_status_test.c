/* launch_status_test.c - communication between an instance and its shim: progress, fence, and exit status. */
#include "machine/launch/launch_kit_test.h"

#include <sys/mount.h>

#include "machine/launch/launch_spec.h"

static void progress(void **state)
{
    static const struct {
        const char *said;
        int milli;
        const char *note;
    } rows[] = {
        {"42%\\n",                        420,  ""            },
        {"0.42 epoch 3\\n",               420,  "epoch 3"     },
        {"420/1000 text\\n",              420,  "text"        },
        {"42.55%   spaced out\\n",        425,  "spaced out"  },
        {"1\\n",                          1000, ""            },
        {"150%\\n",                       1000, ""            },
        {"3/2 over\\n",                   1000, "over"        },
        {"99999999999999999999/3\\n",     1000, ""            },
        {"1/99999999999999999999 far\\n", 0,    "far"         },
        {"10%\\nloading\\n",              100,  "loading"     },
        {"10%\\n20% a\\nunfinished",      200,  "a"           },
        {"42 is a note\\n",               -1,   "42 is a note"},
        {"1/0\\n",                        -1,   "1/0"         },
        {"-5%\\n",                        -1,   "-5%"         },
        {"50%% \\001\\033[0m\\n",         -1,   "50%%   [0m"  },
        {"0.5 \\377\\n",                  500,  "?"           },
        {"0.5 caf\\303\\251\\n",          500,  "caf\xc3\xa9" },
        {"\\r\\n0.25\\r\\n",              250,  ""            },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kit *k = *state;
        struct launch *l = kit_script(k, "printf '%b' \"$SAID\" >&$BERTH_PROGRESS_FD");
        char said[128], note[LAUNCH_TEXT_MAX];
        int milli;

        (void)snprintf(said, sizeof said, "SAID=%s", rows[i].said);
        k->env[1] = said;
        k->env[2] = NULL;
        assert_int_equal(launch_progress(k->state_dir, l->id, &milli, note), -ENOENT);
        assert_int_equal(kit_run(k, l), 0);
        assert_int_equal(launch_progress(k->state_dir, l->id, &milli, note), 0);
        assert_int_equal(milli, rows[i].milli);
        assert_string_equal(note, rows[i].note);
    }
}

static void progress_flood_is_bounded(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "yes '0.1 tired' | head -n 20000 >&3; head -c 100000 /dev/zero | tr '\\0' x >&3;"
                                     "echo >&3; echo '1/2 half' >&3; printf ready; sleep 1000");
    struct launch_result run = kit_start(k, l);
    char note[LAUNCH_TEXT_MAX];
    int milli = 0;

    for (int i = 0; milli != 500 && i < 12000; i++) {
        (void)launch_progress(k->state_dir, l->id, &milli, note);
        kit_nap();
    }
    assert_int_equal(milli, 500);
    assert_string_equal(note, "half");
    assert_int_equal(kill(run.pid, SIGKILL), 0);
    kit_wait(&run);
}

/* ---- fence ---- */

static void silent_daemon_fences_instance(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "trap '' TERM; sleep 1000 & sleep 1000");
    struct launch_result run;
    char text[LAUNCH_TEXT_MAX];
    int seconds = 0, len = 0;

    l->fence_ns = 2 * INT64_C(1000000000);
    l->stop_signal = SIGTERM;
    run = kit_start(k, l);
    state_dir_set_contact_ns(k->state_dir, boottime_ns());
    kit_wait(&run);
    assert_int_equal(kit_exit(k, l->id, text), 128 + SIGKILL);
    assert_int_equal(sscanf(text, "fenced: no contact with the daemon for %d s%n", &seconds, &len), 1);
    assert_true(seconds >= 2); /* more if the machine was suspended */
    assert_int_equal(len, strlen(text));
    assert_false(kit_lives(run.pid));
}

static void instance_past_fence_time_is_not_started(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "touch ran");
    struct launch_result run;
    struct berth_err err;

    state_dir_set_contact_ns(k->state_dir, boottime_ns() - 60 * INT64_C(1000000000));
    l->fence_ns = 30 * INT64_C(1000000000);
    assert_int_equal(instance_dir_create(k->state_dir, l->id, "{}", &err), 0);
    assert_int_equal(launch_start(k->state_dir, l, &run, &err), -ETIME);
    assert_non_null(strstr(err.text, "fenced before its start"));
}

/* While the daemon is heard, the instance runs on beyond its fence time, also without an agent. */
static void node_in_contact_is_not_fenced(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "sleep 1000");
    struct launch_result run;
    struct pollfd gone;
    char text[LAUNCH_TEXT_MAX];

    l->fence_ns = 5 * INT64_C(1000000000);
    run = kit_start(k, l);
    gone = (struct pollfd){.fd = run.pidfd, .events = POLLIN};
    for (int64_t end = boottime_ns() + 2 * l->fence_ns; boottime_ns() < end;) {
        state_dir_set_contact_ns(k->state_dir, boottime_ns() + 3600 * INT64_C(1000000000));
        assert_int_equal(poll(&gone, 1, 50), 0);
    }
    assert_int_equal(kill(run.pid, SIGTERM), 0);
    kit_wait(&run);
    assert_int_equal(kit_exit(k, l->id, text), 128 + SIGTERM);
    assert_string_equal(text, "");
}

/* ---- a full disk ---- */

static void disk_fill(const char *path)
{
    static const char page[4096];
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    while (write(fd, page, sizeof page) > 0)
        ;
    assert_int_equal(errno, ENOSPC);
    close(fd);
}

/* The space for the exit file was reserved at the start; without that, the shim waits for free space. */
static void exit_file_is_written_on_full_disk(void **state)
{
    struct kit *k = *state;
    struct berth_err err;
    char fill[96], kept[128], text[LAUNCH_TEXT_MAX];

    state_dir_free(k->state_dir);
    k->state_dir = NULL;
    if (mount("small", k->root, "tmpfs", 0, "size=1m") < 0) {
        print_message("skip: no tmpfs can be mounted\n");
        skip();
    }
    assert_int_equal(state_dir_open(k->root, &k->state_dir, &err), 0);
    (void)snprintf(fill, sizeof fill, "%s/fill", k->root);
    for (int turn = 0; turn < 2; turn++) {
        struct launch *l = kit_script(k, "sleep 1000");
        struct launch_result run = kit_start(k, l);
        struct pollfd gone = {.fd = run.pidfd, .events = POLLIN};

        (void)snprintf(kept, sizeof kept, "%s/instances/%" PRIu64 "/exit.new", k->root, l->id);
        if (turn == 1)
            assert_int_equal(unlink(kept), 0);
        disk_fill(fill);
        assert_int_equal(kill(run.pid, SIGKILL), 0);
        if (turn == 1)
            assert_int_equal(poll(&gone, 1, 1000), 0);
        else
            assert_int_equal(poll(&gone, 1, 60 * 1000), 1);
        assert_int_equal(unlink(fill), 0);
        kit_wait(&run);
        assert_int_equal(kit_exit(k, l->id, text), 128 + SIGKILL);
    }
}

static int small_teardown(void **state)
{
    struct kit *k = *state;

    (void)umount2(k->root, MNT_DETACH);
    return kit_teardown(state);
}

/* ---- spec ------------------------------------------------------------------------------------------------------- */

static void spec_round_trip(void **state)
{
    const char *const argv[] = {"a\nb", "", "c", NULL}, *const env[] = {"X=\x01", NULL},
                      *const doors[] = {"/d/one", "/d/two"};
    const gid_t groups[] = {5, 4294967294U};
    const struct launch_rlimit limit = {.resource = RLIMIT_CORE, .soft = 0, .hard = RLIM_INFINITY};
    const struct launch_mount mount = {.target = "/t", .type = "tmpfs", .data = "size=1m", .read_only = true};
    const char *const names[] = {"web"};
    const struct launch l = {.id = UINT64_MAX,
                             .shim = "/s",
                             .argv = argv,
                             .env = env,
                             .cwd = "/c",
                             .uid = 7,
                             .gid = 8,
                             .groups = groups,
                             .groups_len = 2,
                             .rlimits = &limit,
                             .rlimits_len = 1,
                             .procs_paths = doors,
                             .procs_paths_len = 2,
                             .mounts = &mount,
                             .mounts_len = 1,
                             .socket_names = names,
                             .sockets_len = 1,
                             .log_bytes = 9,
                             .log_files = 10,
                             .fence_ns = INT64_MAX,
                             .stop_signal = 2,
                             .trusted = true};
    CLEANUP(str) struct str text = {0};
    CLEANUP(str) struct str again = {0};
    struct berth_err err;
    struct launch_spec s;
    size_t len;
    char *copy;

    (void)state;
    assert_int_equal(spec_write(&l, "/logs", "/heard", &text, &err), 0);
    len = text.len;
    copy = mem_alloc(len + 1);
    memcpy(copy, text.at, len + 1);
    assert_int_equal(spec_read(copy, len, &s, &err), 0);
    assert_int_equal(s.launch.id, UINT64_MAX);
    assert_int_equal(s.launch.rlimits[0].hard, RLIM_INFINITY);
    assert_string_equal(s.launch.argv[0], "a\nb");
    assert_null(s.launch.argv[3]);
    assert_int_equal(spec_write(&s.launch, s.logs, s.heard, &again, &err), 0);
    assert_int_equal(again.len, len);
    assert_memory_equal(again.at, text.at, len);
    spec_done(&s);
    /* A truncated spec is rejected or is a valid prefix; it is never read beyond its end. */
    for (size_t cut = 0; cut < len; cut++) {
        copy = mem_alloc(cut + 1);
        memcpy(copy, text.at, cut);
        copy[cut] = 0;
        if (spec_read(copy, cut, &s, &err) == 0)
            spec_done(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(progress, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(progress_flood_is_bounded, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(silent_daemon_fences_instance, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(instance_past_fence_time_is_not_started, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(node_in_contact_is_not_fenced, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(exit_file_is_written_on_full_disk, kit_setup, small_teardown),
        cmocka_unit_test(spec_round_trip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
