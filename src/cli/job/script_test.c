/* script_test.c - scripts as jobs: words of a line, #BERTH lines, #SBATCH lines and the resulting documents. */
#include "cli/job/script.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cli/job/submission.h"
#include "wire/text/document.h"

static void words_are_split_as_by_a_shell(void **state)
{
    static const struct {
        const char *line, *want; /* NULL: an unclosed quote */
    } rows[] = {
        {" -J name  --time=5 ", "-J|name|--time=5|"},
        {" --env 'A=b c'",      "--env|A=b c|"     },
        {" \"a \\\" b\" c\\ d", "a \" b|c d|"      },
        {" --a=x # a comment",  "--a=x|"           },
        {" a#b",                "a#b|"             },
        {"",                    ""                 },
        {" 'open",              NULL               },
        {" one\r",              "one|"             },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[64], *at[8], found[128] = "";
        (void)snprintf(line, sizeof line, "%s", rows[i].line);
        int len = script_words(line, at, 8);
        if ((len < 0) != (rows[i].want == NULL))
            fail_msg("'%s': %d", rows[i].line, len);
        for (int k = 0; k < len; k++) {
            strncat(found, at[k], sizeof found - strlen(found) - 1);
            strncat(found, "|", sizeof found - strlen(found) - 1);
        }
        if (rows[i].want)
            assert_string_equal(found, rows[i].want);
    }
}

struct captured_output {
    char *text;
    size_t len;
    FILE *file;
    struct cli cli;
};

static void captured_output_init(struct captured_output *t)
{
    t->file = open_memstream(&t->text, &t->len);
    assert_non_null(t->file);
    t->cli = (struct cli){.out = t->file, .err = t->file};
}

/* Checks that `found` has every member of `want` with the same value. */
static void expect_members(const json_t *found, const char *want, const char *label)
{
    CLEANUP(json) json_t *expected = json_loads(want, 0, NULL);
    const char *key;
    json_t *value;

    assert_non_null(expected);
    json_object_foreach(expected, key, value)
    {
        const json_t *there = json_object_get(found, key);
        if (json_is_null(value) ? there == NULL : there && json_equal(there, value))
            continue;
        char *text = there ? json_dumps(there, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
        fail_msg("%s: %s is %s", label, key, text ? text : "not there");
    }
}

static void sbatch_lines_become_keys(void **state)
{
    static const struct {
        const char *lines, *want, *says; /* says: the message on standard error; NULL: none */
    } rows[] = {
        {"#SBATCH -J train\n#SBATCH -p gpu",                                            "{\"name\": \"train\", \"queue\": \"gpu\", \"replicas\": null}",                        NULL                                   },
        {"#SBATCH -t 90",                                                               "{\"time_limit\": \"1h30m\"}",                                                          NULL                                   },
        {"#SBATCH --time=1-12:00:00",                                                   "{\"time_limit\": \"1d12h\"}",                                                          NULL                                   },
        {"#SBATCH --time=UNLIMITED",                                                    "{\"time_limit\": null}",                                                               NULL                                   },
        {"#SBATCH -c 8 --mem=16G",                                                      "{\"resources\": {\"cpu\": 8, \"memory\": \"16Gi\"}}",                                  NULL                                   },
        {"#SBATCH --mem 500",                                                           "{\"resources\": {\"cpu\": 1, \"memory\": \"500Mi\"}}",                                 NULL                                   },
        {"#SBATCH -c 4 --mem-per-cpu=2G",                                               "{\"resources\": {\"cpu\": 4, \"memory\": \"8Gi\"}}",                                   NULL                                   },
 /* On one node and without srun the script runs once, with all cores. */
        {"#SBATCH -n 8",                                                                "{\"replicas\": null, \"resources\": {\"cpu\": 8}}",                                    NULL                                   },
        {"#SBATCH -n 8\nsrun hostname",                                                 "{\"replicas\": 8, \"gang\": true, \"resources\": {\"cpu\": 1}}",                       NULL                                   },
        {"#SBATCH -N 2 --ntasks-per-node=4 --gres=gpu:a100:4 --mem=64G\nsrun python x",
         "{\"replicas\": 8, \"gang\": true, \"max_per_node\": 4, \"gpu\": {\"count\": 1, \"model\": \"a100\"},"
         " \"resources\": {\"cpu\": 1, \"memory\": \"16Gi\"}}",                                                                                                                 NULL                                   },
        {"#SBATCH -N 2\ntorchrun x",                                                    "{\"replicas\": 2, \"max_per_node\": 1}",                                               "runs in every task"                   },
        {"#SBATCH --gpus=4",                                                            "{\"gpu\": {\"count\": 4}}",                                                            NULL                                   },
        {"#SBATCH --gpus-per-node=h100:8",                                              "{\"gpu\": {\"count\": 8, \"model\": \"h100\"}}",                                       NULL                                   },
        {"#SBATCH --gres=gpu",                                                          "{\"gpu\": {\"count\": 1}}",                                                            NULL                                   },
        {"#SBATCH --gres=fpga:1",                                                       "{\"gpu\": null}",                                                                      "'fpga:1' is not supported"            },
        {"#SBATCH -a 0-9%3",                                                            "{\"array\": \"0-9%3\"}",                                                               NULL                                   },
        {"#SBATCH -d afterok:17:18,afterany:19,singleton",
         "{\"after\": [{\"job\": 17, \"when\": \"ok\"}, {\"job\": 18, \"when\": \"ok\"}, {\"job\": 19, \"when\": \"ended\"}],"
         " \"singleton\": true}",                                                                                                                                               NULL                                   },
        {"#SBATCH --dependency=afternotok:5 --dependency after:6",                      "{\"after\": [{\"job\": 6, \"when\": \"started\"}]}",
         NULL                                                                                                                                                                                                          },
        {"#SBATCH --signal=B:USR1@120",                                                 "{\"checkpoint\": {\"signal\": \"USR1\", \"grace\": \"2m\"}}",                          NULL                                   },
        {"#SBATCH --mail-user=a@b --mail-type=BEGIN,END",
         "{\"notify\": [{\"to\": \"a@b\", \"on\": [\"started\", \"ended\"]}]}",                                                                                                 NULL                                   },
        {"#SBATCH --mail-user=a@b --mail-type=NONE",                                    "{\"notify\": null}",                                                                   NULL                                   },
        {"#SBATCH -w n7",                                                               "{\"node\": \"n7\"}",                                                                   NULL                                   },
        {"#SBATCH -x n1,n2",                                                            "{\"require\": {\"hostname\": {\"not_in\": [\"n1\", \"n2\"]}}}",                        NULL                                   },
        {"#SBATCH -C 'ssd&rack=7'",                                                     "{\"require\": {\"ssd\": {\"exists\": true}, \"rack\": \"7\"}}",                        NULL                                   },
        {"#SBATCH -C a|b",                                                              "{\"require\": {\"any\": [{\"a\": {\"exists\": true}}, {\"b\": {\"exists\": true}}]}}",
         NULL                                                                                                                                                                                                          },
        {"#SBATCH -A physics --qos=high",                                               "{\"attributes\": {\"account\": \"physics\", \"qos\": \"high\"}}",                      NULL                                   },
        {"#SBATCH -H --no-requeue --nice=50 -D /data",
         "{\"hold\": true, \"requeue\": false, \"urgency\": -50, \"workdir\": \"/data\"}",                                                                                      NULL                                   },
        {"#SBATCH -o out.%j",                                                           "{\"name\": null}",                                                                     "'berth logs JOB'"                     },
        {"#SBATCH --exclusive",                                                         "{}",                                                                                   "--exclusive"                          },
 /* Unknown options are reported with their line; the other options still apply. */
        {"#SBATCH --mystery=5 -J still",                                                "{\"name\": \"still\"}",                                                                "job.sh:2: --mystery=5: unknown option"},
        {"# text\n\n#SBATCH --foo bar -c 2",                                            "{\"resources\": {\"cpu\": 2}}",                                                        "job.sh:4: --foo"                      },
        {"echo\n#SBATCH -J late",                                                       "{\"name\": null}",                                                                     NULL                                   },
        {"##SBATCH -J off",                                                             "{\"name\": null}",                                                                     NULL                                   },
        {"#SBATCHX -J off",                                                             "{\"name\": null}",                                                                     NULL                                   },
        {"#SBATCH -J slurm\n#BERTH --name ours --cpu 3",                                "{\"name\": \"ours\", \"resources\": {\"cpu\": 3}}",                                    NULL                                   },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(json) json_t *found = json_object();
        CLEANUP(str) struct str text = {0};
        struct captured_output t;
        captured_output_init(&t);
        str_addf(&text, "#!/bin/sh\n%s\n", rows[i].lines);
        assert_int_equal(script_parse(&t.cli, "job.sh", text.at, NULL, found), EXIT_OK);
        assert_int_equal(fclose(t.file), 0);
        expect_members(found, rows[i].want, rows[i].lines);
        if (rows[i].says ? !strstr(t.text, rows[i].says) : t.len > 0)
            fail_msg("%s: says '%s', not '%s'", rows[i].lines, t.text, rows[i].says ? rows[i].says : "");
        free(t.text);
    }
}

static void invalid_values_are_rejected(void **state)
{
    static const struct {
        const char *lines, *says;
    } rows[] = {
        {"#SBATCH -t soon",                "invalid duration"               },
        {"#SBATCH --mem=lots",             "takes a size"                   },
        {"#SBATCH -n many",                "takes a whole number"           },
        {"#SBATCH -a 3-1",                 "invalid array"                  },
        {"#SBATCH -d afterok:x",           "not a job number"               },
        {"#SBATCH -d afterok:1?afterok:2", "all dependencies must be met"   },
        {"#BERTH --cpus 4",                "job.sh:2: unknown option --cpus"},
        {"#BERTH sleep 5",                 "contain only options"           },
        {"#BERTH --time never",            "invalid duration"               },
        {"#BERTH --name 'open",            "unterminated quote"             },
        {"#BERTH -f other.yaml",           "--file is not allowed"          },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(json) json_t *found = json_object();
        CLEANUP(str) struct str text = {0};
        struct captured_output t;
        captured_output_init(&t);
        str_addf(&text, "#!/bin/sh\n%s\n", rows[i].lines);
        assert_int_equal(script_parse(&t.cli, "job.sh", text.at, NULL, found), EXIT_USAGE);
        assert_int_equal(fclose(t.file), 0);
        if (!strstr(t.text, rows[i].says))
            fail_msg("%s: says '%s'", rows[i].lines, t.text);
        free(t.text);
    }
}

static void command_line_overrides_the_script(void **state)
{
    CLEANUP(json) json_t *found = json_object();
    struct slurm_values over = {.job_name = "mine", .cpus_per_task = "2", .hold = true};
    struct captured_output t;

    (void)state;
    captured_output_init(&t);
    assert_int_equal(script_parse(&t.cli, "job.sh", "#!/bin/sh\n#SBATCH -J theirs -c 8 -p gpu\n", &over, found),
                     EXIT_OK);
    (void)fclose(t.file);
    expect_members(found, "{\"name\": \"mine\", \"queue\": \"gpu\", \"hold\": true, \"resources\": {\"cpu\": 2}}",
                   "over");
    assert_string_equal(json_string_value(json_object_get(json_object_get(found, "env"), "SLURM_JOB_NAME")), "mine");
    free(t.text);
}

static void export_adds_variables(void **state)
{
    static const char *const environment[] = {"A=1", "B=x=y", "HOME=/root", "BERTH_TOKEN=secret", NULL};
    static const struct {
        const char *text, *want; /* NULL: rejected */
    } rows[] = {
        {"NONE",    "{\"env\": {\"A\": \"own\"}}"                              },
        {"B",       "{\"env\": {\"A\": \"own\", \"B\": \"x=y\"}}"              },
        {"ALL,C=3", "{\"env\": {\"A\": \"own\", \"B\": \"x=y\", \"C\": \"3\"}}"},
        {"MISSING", NULL                                                       },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(json) json_t *document = json_pack("{s:{s:s}}", "env", "A", "own");
        struct captured_output t;
        captured_output_init(&t);
        int rc = script_export(&t.cli, rows[i].text, environment, document);
        (void)fclose(t.file);
        free(t.text);
        assert_int_equal(rc, rows[i].want ? EXIT_OK : EXIT_USAGE);
        if (rows[i].want)
            expect_members(document, rows[i].want, rows[i].text);
    }
}

static void options_become_keys(void **state)
{
    static const struct {
        struct submission_values v;
        const char *want; /* NULL: rejected */
    } rows[] = {
        {{.time = "2h", .queue = "night"},         "{\"time_limit\": \"2h\", \"queue\": \"night\"}"                },
        {{.tasks = {4, true}},                     "{\"replicas\": 4, \"gang\": true}"                             },
        {{.min = {2, true}, .max = {8, true}},     "{\"min\": 2, \"max\": 8, \"gang\": true}"                      },
        {{.min = {2, true}},                       NULL                                                            },
        {{.tasks = {4, true}, .array = "0-9"},     NULL                                                            },
        {{.requeue = true, .no_requeue = true},    NULL                                                            },
        {{.no_requeue = true, .no_preempt = true}, "{\"requeue\": false, \"preemptible\": false}"                  },
        {{.gpus = "A100:2"},                       "{\"gpu\": {\"count\": 2, \"model\": \"A100\"}}"                },
        {{.gpus = "0.5"},                          "{\"gpu\": 0.5}"                                                },
        {{.gpus = "A100:half"},                    NULL                                                            },
        {{.gpus = ":2"},                           NULL                                                            },
        {{.nice = "20"},                           "{\"urgency\": -20}"                                            },
        {{.urgency = "high"},                      NULL                                                            },
        {{.parameters = "7000000000"},             "{\"parameters\": 7000000000}"                                  },
        {{.checkpoint = "USR1@90"},                "{\"checkpoint\": {\"signal\": \"USR1\", \"grace\": \"1m30s\"}}"},
        {{.checkpoint = "USR1@soon"},              NULL                                                            },
        {{.array = "0-9%2"},                       "{\"array\": \"0-9%2\"}"                                        },
        {{.log_keep = "3d"},                       "{\"log\": {\"keep\": \"3d\"}}"                                 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(json) json_t *found = json_object();
        struct captured_output t;
        captured_output_init(&t);
        int rc = submission_make(&t.cli, &rows[i].v, found);
        (void)fclose(t.file);
        if (rc != (rows[i].want ? EXIT_OK : EXIT_USAGE))
            fail_msg("row %zu: %d %s", i, rc, t.text);
        free(t.text);
        if (rows[i].want)
            expect_members(found, rows[i].want, "row");
    }
}

static void lists_become_keys(void **state)
{
    const char *after[] = {"17,job/18"}, *ok[] = {"19"}, *notify[] = {"a@b.org", "http://x/y@started,failed"};
    struct submission_values v = {
        .after = {after,  1, 1},
          .after_ok = {ok,     1, 1},
          .notify = {notify, 2, 2}
    };
    CLEANUP(json) json_t *found = json_object();
    struct captured_output t;

    (void)state;
    captured_output_init(&t);
    assert_int_equal(submission_make(&t.cli, &v, found), EXIT_OK);
    expect_members(
        found,
        "{\"after\": [{\"job\": 17, \"when\": \"ended\"}, {\"job\": 18, \"when\": \"ended\"}, {\"job\": 19, \"when\": "
        "\"ok\"}], \"notify\": [{\"to\": \"a@b.org\"}, {\"to\": \"http://x/y\", \"on\": [\"started\", \"failed\"]}]}",
        "lists");
    after[0] = "yesterday";
    assert_int_equal(submission_make(&t.cli, &v, found), EXIT_USAGE);
    (void)fclose(t.file);
    free(t.text);
}

static void merge_prefers_the_second_document(void **state)
{
    CLEANUP(json)
    json_t *to = json_loads("{\"name\": \"a\", \"env\": {\"A\": \"1\", \"B\": \"1\"}, \"after\": [1]}", 0, NULL);
    CLEANUP(json) json_t *over = json_loads("{\"name\": \"b\", \"env\": {\"B\": \"2\"}, \"after\": [2]}", 0, NULL);

    (void)state;
    submission_merge(to, over);
    expect_members(to, "{\"name\": \"b\", \"env\": {\"A\": \"1\", \"B\": \"2\"}, \"after\": [2]}", "merged");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_split_as_by_a_shell),
        cmocka_unit_test(sbatch_lines_become_keys),
        cmocka_unit_test(invalid_values_are_rejected),
        cmocka_unit_test(command_line_overrides_the_script),
        cmocka_unit_test(export_adds_variables),
        cmocka_unit_test(options_become_keys),
        cmocka_unit_test(lists_become_keys),
        cmocka_unit_test(merge_prefers_the_second_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
