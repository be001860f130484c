/* optask_doc_test.c - documents of OpTasks, of their state on a node, and of reports of agents. */
#include "wire/doc/optask_doc.h"

#include "wire/doc/doc_kit_test.h"

static void optask_documents_are_read(void **state)
{
    (void)state;
    CLEANUP(given)
    struct given g = given("{id: tune, script: 'echo \"$1\"', undo: self, args: [a, 5], language: python, parallel: 3,"
                           " max_failures: 2, drain: true, timeout: 90s, require: {disk: ssd}, ready: sysctl}");
    struct optask_doc d = {0};
    READ(&g, optask_doc_read, &d);
    assert_string_equal(d.script, "echo \"$1\"");
    assert_string_equal(d.undo, OPTASK_UNDO_SELF);
    assert_int_equal(d.args_len, 2);
    assert_string_equal(d.args[1], "5");
    assert_int_equal(d.language, OPTASK_PYTHON);
    assert_int_equal(d.parallel, 3);
    assert_int_equal(d.max_failures, 2);
    assert_true(d.drain);
    assert_int_equal(d.timeout_ns, INT64_C(90) * 1000000000);
    assert_int_equal(d.require_len, 1);

    CLEANUP(given) struct given least = given("{id: x, script: y, init: true}");
    READ(&least, optask_doc_read, &d);
    assert_int_equal(d.parallel, 1);
    assert_int_equal(d.max_failures, 0);
    assert_int_equal(d.language, OPTASK_SHELL);
    assert_int_equal(d.timeout_ns, OPTASK_TIMEOUT_NS_DEFAULT);
    assert_null(d.undo);

    static const struct refusal rows[] = {
        {"{script: y, init: true}",                                                      "id: missing"                          },
        {"{id: x, init: true}",                                                          "script: missing"                      },
        {"{id: x, init: true, script: ''}",                                              "script: expected the text"            },
        {"{id: x, init: true, script: self}",                                            "script: expected the text"            },
        {"{id: x, script: y}",                                                           "nodes: missing"                       },
        {"{id: x, script: y, init: true, nodes: [a]}",                                   "nodes: not allowed with init"         },
        {"{id: x, script: y, init: true, drain: true}",                                  "drain: not allowed with init"         },
        {"{id: x, script: y, nodes: [a], require: {b: c}}",                              "require: give either require or nodes"},
        {"{id: x, script: y, init: true, args: x}",                                      "args: expected a list"                },
        {"{id: x, script: y, init: true, args: [[]]}",                                   "args"                                 },
        {"{id: x, script: y, init: true, parallel: 0}",                                  "parallel: expected 1"                 },
        {"{id: x, script: y, init: true, timeout: 0s}",                                  "timeout: expected a second"           },
        {"{id: x, script: y, init: true, timeout: 8d}",                                  "timeout: expected a second"           },
        {"{id: x, script: y, init: true, language: lua}",                                "language"                             },
        {"{id: x, script: y, init: true, sha256: ABC}",                                  "sha256: expected 64"                  },
        {"{id: x, script: y, init: true, undo_sha256: "
         "'0123456789012345678901234567890123456789012345678901234567890123'}", "undo_sha256: needs undo"              },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given bad = given(rows[i].doc);
        REFUSED(&rows[i], &bad, optask_doc_read(bad.doc, &bad.arena, &d, &bad.err));
    }
}

static void step_reports_are_read(void **state)
{
    (void)state;
    CLEANUP(given)
    struct given g = given("{attempt: 2, state: undone, fault: package-manager, error: no such package, exit: 82}");
    struct opstep_report d = {0};
    READ(&g, opstep_report_read, &d);
    assert_int_equal(d.attempt, 2);
    assert_int_equal(d.state, OPSTEP_UNDONE);
    assert_int_equal(d.fault, OPFAULT_PACKAGE_MANAGER);
    assert_true(d.exit_reported);
    assert_int_equal(d.exit, 82);

    static const struct refusal rows[] = {
        {"{state: done}",                            "attempt: missing"       },
        {"{attempt: 1}",                             "state: expected running"},
        {"{attempt: 1, state: pending}",             "state: expected running"},
        {"{attempt: 1, state: over}",                "state"                  },
        {"{attempt: 1, state: failed, fault: luck}", "fault"                  },
        {"{attempt: 1, state: failed, exit: 256}",   "exit: expected"         },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given bad = given(rows[i].doc);
        REFUSED(&rows[i], &bad, opstep_report_read(bad.doc, &bad.arena, &d, &bad.err));
    }
}

static void step_documents_are_read(void **state)
{
    (void)state;
    CLEANUP(given)
    struct given g =
        given("{v: 1, optask: x, node: n, attempt: 3, undo: true, state: undoing, drained: true, before: cordoned,"
              " excused: 2, init: true}");
    struct opstep_doc d = {0};
    READ(&g, opstep_doc_read, &d);
    assert_int_equal(d.state, OPSTEP_UNDOING);
    assert_true(d.undo && d.drained && d.init && !d.exit_reported);
    assert_string_equal(d.before, "cordoned");
    assert_int_equal(d.excused, 2);
    CLEANUP(given) struct given bad = given("{optask: x}");
    assert_int_not_equal(opstep_doc_read(bad.doc, &bad.arena, &d, &bad.err), 0);
    for (int i = 0; i <= OPSTEP_UNDONE; i++)
        assert_true(opstep_state_name((enum opstep_state)i)[0]);
    assert_string_equal(opstep_fault_name(OPFAULT_NONE), "");
    assert_string_equal(opstep_fault_name(OPFAULT_NO_SPACE), "no-space");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optask_documents_are_read),
        cmocka_unit_test(step_reports_are_read),
        cmocka_unit_test(step_documents_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
