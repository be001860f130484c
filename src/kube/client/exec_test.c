/* exec_test.c - exec plugins: their environment, their output, and when they are run again. */
#include "kube/client/exec.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "kube/client/server_kit_test.h"
#include "wire/text/yaml.h"

#define V1 "client.authentication.k8s.io/v1"
#define CREDENTIAL(status) "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":{" status "}}"

static char dir[] = "/tmp/berth-kube-exec.XXXXXX";

static int setup(void **state)
{
    (void)state;
    return mkdtemp(dir) ? setenv("OURS", "from us", 1) : -1;
}

static int teardown(void **state)
{
    CLEANUP(str) struct str command = {0};
    (void)state;
    str_addf(&command, "rm -r %s", dir);
    return system(command.at);
}

/* Creates a program DIR/NAME from these lines of shell. */
static void program(const char *name, const char *lines)
{
    CLEANUP(str) struct str path = {0};
    str_addf(&path, "%s/%s", dir, name);
    FILE *f = fopen(path.at, "we");
    assert_non_null(f);
    assert_true(fprintf(f, "#!/bin/sh\ncd %s\n%s\n", dir, lines) > 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path.at, 0700), 0);
}

/* Parses a kubeconfig's `exec` and cluster from YAML flow without braces. */
static struct kube_exec *exec_of(const char *exec, const char *cluster)
{
    CLEANUP(str) struct str yaml = {0}, kubeconfig = {0};
    json_t *root = NULL;
    struct kube_exec *e = NULL;
    struct berth_err err = {0};
    str_addf(&yaml, "{exec: {apiVersion: " V1 ", %s}, cluster: {%s}}", exec, cluster);
    str_addf(&kubeconfig, "%s/config", dir);
    if (yaml_parse(yaml.at, yaml.len, "kit", &root, &err) < 0 ||
        kube_exec_read(json_object_get(root, "exec"), json_object_get(root, "cluster"), kubeconfig.at, &e, &err) < 0)
        fail_msg("%s", err.text);
    json_decref(root);
    return e;
}

static void kube_exec_cleanup(struct kube_exec **e)
{
    kube_exec_free(*e);
}

/* ---- output ----------------------------------------------------------------------------------------------------- */

static void credentials_are_parsed(void **state)
{
    static const struct {
        const char *label, *text, *token, *cert, *key;
        int64_t expires_s; /* 0: not given */
        const char *says;  /* error message */
    } rows[] = {
        {"a token",                 CREDENTIAL("\"token\":\"t\""),                                                               "t",  NULL, NULL, 0,    NULL                         },
        {"that expires",            CREDENTIAL("\"token\":\"t\",\"expirationTimestamp\":\"1970-01-01T01:00:00Z\""),              "t",  NULL,
         NULL,                                                                                                                                     3600, NULL                         },
        {"a certificate",           CREDENTIAL("\"clientCertificateData\":\"C\",\"clientKeyData\":\"K\""),                       NULL, "C",  "K",  0,
         NULL                                                                                                                                                                         },
        {"nothing",                 "",                                                                                          NULL, NULL, NULL, 0,    "not an ExecCredential"      },
        {"words",                   "please log in",                                                                             NULL, NULL, NULL, 0,    "not an ExecCredential"      },
        {"another kind",            "{\"kind\":\"Status\"}",                                                                     NULL, NULL, NULL, 0,    "not an ExecCredential"      },
        {"another version",         "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "beta1\",\"status\":{\"token\":\"t\"}}",
         NULL,                                                                                                                         NULL, NULL, 0,    "set exec.apiVersion to that"},
        {"neither",                 CREDENTIAL(""),                                                                              NULL, NULL, NULL, 0,    "neither a token nor"        },
        {"half",                    CREDENTIAL("\"token\":\"t\",\"clientKeyData\":\"K\""),                                       NULL, NULL, NULL, 0,
         "a key without a certificate"                                                                                                                                                },
        {"a token with a line end", CREDENTIAL("\"token\":\"t\\nX: y\""),                                                        NULL, NULL, NULL, 0,    "invalid token"              },
        {"no time",                 CREDENTIAL("\"token\":\"t\",\"expirationTimestamp\":\"soon\""),                              NULL, NULL, NULL, 0,
         "invalid expirationTimestamp"                                                                                                                                                },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(kube_credential) struct kube_credential c = {0};
        struct berth_err err = {0};
        int rc = kube_credential_parse(rows[i].text, strlen(rows[i].text), V1, &c, &err);
        if ((rc < 0) != (rows[i].says != NULL) || (rows[i].says && !strstr(err.text, rows[i].says)))
            fail_msg("%s: %d \"%s\"", rows[i].label, rc, err.text);
        const char *const want[] = {rows[i].token, rows[i].cert, rows[i].key};
        const char *const got[] = {c.token, c.cert_pem, c.key_pem};
        for (size_t k = 0; k < ROWS(want); k++)
            if (!want[k] != !got[k] || (want[k] && strcmp(want[k], got[k]) != 0))
                fail_msg("%s, part %zu", rows[i].label, k);
        if (rc == 0)
            assert_int_equal(c.expires_ns, rows[i].expires_s ? rows[i].expires_s * 1000000000 : INT64_MAX);
    }
}

/* ---- one run ---------------------------------------------------------------------------------------------------- */

static int run(const char *exec, const char *cluster, struct kube_credential *ret, struct berth_err *err)
{
    CLEANUP(kube_exec) struct kube_exec *e = exec_of(exec, cluster);
    return kube_exec_run(e, -1, ret, err);
}

static void file_is(const char *name, const char *want)
{
    CLEANUP(str) struct str path = {0};
    char text[4096] = "";
    str_addf(&path, "%s/%s", dir, name);
    FILE *f = fopen(path.at, "re");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    (void)fclose(f);
    assert_string_equal(text, want);
}

/* Arguments and values are passed literally, without shell expansion. */
static void arguments_and_environment(void **state)
{
    CLEANUP(kube_credential) struct kube_credential c = {0};
    struct berth_err err = {0};
    (void)state;
    program("told", "printf '%s|' \"$@\" \"$OURS\" \"$THEIRS\" >args\n"
                    "printf '%s' \"$KUBERNETES_EXEC_INFO\" >info\n"
                    "read line && echo stdin >>args\n"
                    "printf '%s' '" CREDENTIAL("\"token\":\"t\"") "'");
    if (run("command: ./told, args: ['$(touch x)', '; id', ''], env: [{name: THEIRS, value: '`id`'}, {name: OURS, value: "
            "theirs}]",
            "", &c, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(c.token, "t");
    file_is("args", "$(touch x)|; id||theirs|`id`|");
    file_is("info", "{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"spec\":{\"interactive\":false}}");
    kube_credential_done(&c);
    assert_int_equal(run("command: ./told, provideClusterInfo: true",
                         "server: 'https://api', certificate-authority-data: UEVN, extensions: [{name: "
                         "client.authentication.k8s.io/exec, extension: {audience: a}}]",
                         &c, &err),
                     0);
    file_is("info",
            "{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"spec\":{\"interactive\":false,\"cluster\":{"
            "\"server\":\"https://api\",\"certificate-authority-data\":\"UEVN\",\"config\":{\"audience\":\"a\"}}}}");
    file_is("args", "from us||");
}

static void failures_name_the_command(void **state)
{
    static const struct {
        const char *exec, *says;
    } rows[] = {
        {"command: berth-no-such-program, installHint: Install it with brew.",
         "credential program berth-no-such-program of the kubeconfig: cannot run it: No such file or "
         "directory. Install it with brew."                                                                  },
        {"command: ./nowhere",                                                 "cannot run it"               },
        {"command: ./fails",                                                   "exit code 3; run it manually"},
        {"command: ./dies",                                                    "killed by signal 9"          },
        {"command: ./talks",                                                   "is not an ExecCredential"    },
    };
    (void)state;
    program("fails", "exit 3");
    program("dies", "kill -9 $$");
    program("talks", "echo please log in");
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct kube_credential c = {0};
        struct berth_err err = {0};
        assert_true(run(rows[i].exec, "", &c, &err) < 0);
        if (!strstr(err.text, rows[i].says))
            fail_msg("%s: \"%s\"", rows[i].exec, err.text);
        assert_null(c.token);
    }
}

/* A cancelled run ends at once. */
static void stop_fd_ends_the_run(void **state)
{
    program("sleeps", "exec sleep 600");
    CLEANUP(kube_exec) struct kube_exec *e = exec_of("command: ./sleeps", "");
    struct kube_credential c = {0};
    struct berth_err err = {0};
    (void)state;
    int fd = eventfd(1, EFD_CLOEXEC);
    assert_int_equal(kube_exec_run(e, fd, &c, &err), -ECANCELED);
    (void)close(fd);
}

/* A child process that keeps the pipe open is not waited for. */
static void orphaned_child_delays_nothing(void **state)
{
    CLEANUP(kube_credential) struct kube_credential c = {0};
    (void)state;
    program("leaves", "sleep 60 &\necho $! >left\nprintf '%s' '" CREDENTIAL("\"token\":\"t\"") "'");
    assert_int_equal(run("command: ./leaves", "", &c, NULL), 0);
    assert_string_equal(c.token, "t");
    CLEANUP(str) struct str command = {0};
    str_addf(&command, "kill $(cat %s/left)", dir);
    assert_int_equal(system(command.at), 0); /* the child still runs */
}

/* ---- with requests ---------------------------------------------------------------------------------------------- */

struct heard {
    unsigned done;
    int code;
    char text[BERTH_ERR_TEXT_MAX];
};

static void done(void *ctx, const struct kube_answer *a)
{
    struct heard *h = ctx;
    h->done++;
    h->code = a->code;
    (void)snprintf(h->text, sizeof h->text, "%s", a->text);
}

/* Creates a program that gives t1, then t2, and so on; `more` are members of the status. */
static void counting_program(const char *more)
{
    CLEANUP(str) struct str lines = {0};
    str_addf(&lines,
             "n=$(($(cat n) + 1))\necho $n >n\n"
             "printf '%%s' '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
             "\",\"status\":{%s\"token\":\"t'$n'\"}}'",
             more);
    program("counts", lines.at);
    program("zero", "echo 0 >n");
    CLEANUP(str) struct str command = {0};
    str_addf(&command, "%s/zero", dir);
    assert_int_equal(system(command.at), 0);
}

static void start(struct fake *f, const char *exec)
{
    f->config.exec = exec_of(exec, "");
    fake_start(f, (struct http_config){0});
}

static void ask(struct fake *f, struct heard *h)
{
    (void)kube_start(f->api, &(struct kube_request){.method = "POST",
                                                    .path = "/x",
                                                    .rank = KUBE_USUAL,
                                                    .tries_max = 1, /* retried even so */
                                                    .done = done,
                                                    .ctx = h});
}

/* Expects the next request to have this token, and answers with this status. */
static void meets(struct fake *f, const char *token, int status)
{
    struct http_request *x = fake_next(f);
    CLEANUP(str) struct str want = {0};
    str_addf(&want, "Bearer %s", token);
    assert_string_equal(http_header(x, "Authorization"), want.at);
    fake_answer(x, status, "{}");
}

/* Rejected requests wait for one run and are all retried with its credential. */
static void rejected_credential_runs_plugin_once(void **state)
{
    CLEANUP(fake) struct fake f = {.again_ns = INT64_C(3600000000000)};
    struct heard h[4] = {0};
    (void)state;
    counting_program("");
    start(&f, "command: ./counts");
    ask(&f, &h[0]);
    meets(&f, "t1", 200);
    KIT_UNTIL(&f.kit, h[0].done);
    for (size_t i = 1; i < 4; i++)
        ask(&f, &h[i]);
    for (size_t i = 1; i < 4; i++)
        meets(&f, "t1", 401);
    for (size_t i = 1; i < 4; i++)
        meets(&f, "t2", i == 3 ? 401 : 200); /* retried once only: then the 401 is final */
    KIT_UNTIL(&f.kit, h[1].done && h[2].done && h[3].done);
    assert_int_equal(h[1].code + h[2].code + h[3].code, -EACCES);
    file_is("n", "2\n");
    /* A credential given moments ago is rejected: the plugin is not run for each request. */
    ask(&f, &h[0]);
    meets(&f, "t2", 401);
    KIT_UNTIL(&f.kit, h[0].done == 2);
    assert_int_equal(h[0].code, -EACCES);
    file_is("n", "2\n");
}

/* A credential that expires soon is used until there is a newer one. */
static void plugin_runs_before_expiry(void **state)
{
    CLEANUP(fake) struct fake f = {0};
    struct heard h = {0};
    (void)state;
    counting_program("\"expirationTimestamp\":\"2001-01-01T00:00:00Z\",");
    start(&f, "command: ./counts");
    ask(&f, &h);
    meets(&f, "t1", 200);
    KIT_UNTIL(&f.kit, h.done == 1);
    for (bool newer = false; !newer;) { /* bounded by the time limit of the test */
        unsigned before = h.done;
        ask(&f, &h);
        struct http_request *x = fake_next(&f);
        newer = strcmp(http_header(x, "Authorization"), "Bearer t2") == 0;
        fake_answer(x, 200, "{}");
        KIT_UNTIL(&f.kit, h.done > before);
        (void)usleep(5000);
    }
}

static void later_failure_is_reported(void **state)
{
    CLEANUP(fake) struct fake f = {0};
    struct heard h = {0};
    (void)state;
    counting_program("");
    start(&f, "command: ./counts");
    program("counts", "exit 7");
    ask(&f, &h);
    meets(&f, "t1", 401);
    KIT_UNTIL(&f.kit, h.done);
    assert_int_equal(h.code, -EACCES);
    assert_non_null(strstr(h.text, "it failed with exit code 7"));
}

/* Freeing the kube_api does not wait for a slow plugin. */
static void free_does_not_wait_for_plugin(void **state)
{
    CLEANUP(fake) struct fake f = {0};
    struct heard h = {0};
    (void)state;
    counting_program("");
    start(&f, "command: ./counts");
    program("counts", "exec sleep 600");
    ask(&f, &h);
    meets(&f, "t1", 401);
    KIT_UNTIL(&f.kit, kube_api_stats(f.api).waiting == 1);
    assert_int_equal(h.done, 0);
}

static void first_failure_fails_start(void **state)
{
    CLEANUP(kit) struct kit k = {0};
    CLEANUP(kube_config) struct kube_config config = {.server = mem_strdup("http://127.0.0.1:1")};
    struct kube_api *api = NULL;
    struct berth_err err = {0};
    (void)state;
    program("fails", "exit 3");
    kit_start(&k, (struct http_config){0});
    config.exec = exec_of("command: ./fails", "");
    assert_int_equal(kube_api_new(k.loop, &(struct kube_api_config){.server = &config}, &api, &err), -EIO);
    assert_non_null(strstr(err.text, "exit code 3"));
    assert_null(api);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credentials_are_parsed),        cmocka_unit_test(arguments_and_environment),
        cmocka_unit_test(failures_name_the_command),     cmocka_unit_test(stop_fd_ends_the_run),
        cmocka_unit_test(orphaned_child_delays_nothing), cmocka_unit_test(rejected_credential_runs_plugin_once),
        cmocka_unit_test(plugin_runs_before_expiry),     cmocka_unit_test(later_failure_is_reported),
        cmocka_unit_test(free_does_not_wait_for_plugin), cmocka_unit_test(first_failure_fails_start),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
