/* config_test.c - kubeconfigs and service accounts: parsed values, and error messages. */
#include "kube/client/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))

static char dir[] = "/tmp/berth-kube-config.XXXXXX";

static int setup(void **state)
{
    (void)state;
    (void)unsetenv("KUBECONFIG");
    (void)unsetenv("KUBERNETES_SERVICE_HOST");
    return mkdtemp(dir) ? setenv("HOME", dir, 1) : -1;
}

static int teardown(void **state)
{
    CLEANUP(str) struct str command = {0};
    (void)state;
    str_addf(&command, "rm -r %s", dir);
    return system(command.at);
}

static char *path_of(const char *name)
{
    CLEANUP(str) struct str path = {0};
    str_addf(&path, "%s/%s", dir, name);
    return str_take(&path);
}

static char *file(const char *name, const char *text)
{
    char *path = path_of(name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    return path;
}

#define CONTEXT "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u, namespace: team}}]\n"
#define CLUSTER "clusters: [{name: c, cluster: {server: \"https://api:6443/\"}}]\n"
#define USER "users: [{name: u, user: {token: sesame}}]\n"

static void valid_kubeconfigs(void **state)
{
    static const struct {
        const char *label, *text, *server, *name, *ca, *cert, *key, *token, *namespace;
    } rows[] = {
        {"plain",                CONTEXT CLUSTER USER,                                                     "https://api:6443",      NULL,         NULL,          NULL,   NULL,  "sesame",      "team"   },
        {"files beside it",
         CONTEXT "clusters: [{name: c, cluster: {server: \"https://api\", certificate-authority: ca.pem}}]\n"
                 "users: [{name: u, user: {tokenFile: token}}]\n",                                         "https://api",           NULL,         "PEM OF CA\n", NULL,   NULL,  "from-a-file", "team"   },
        {"contents in it",
         CONTEXT "clusters: [{name: c, cluster: {server: \"https://api\", tls-server-name: kubernetes,"
                 " certificate-authority-data: UEVN}}]\n"
                 "users: [{name: u, user: {client-certificate-data: Q0VSVA==, client-key-data: S0VZ}}]\n", "https://api",           "kubernetes", "PEM",         "CERT", "KEY", NULL,          "team"   },
        {"JSON, without a user",
         "{\"current-context\": \"a\", \"contexts\": [{\"name\": \"a\", \"context\": {\"cluster\": \"c\"}}],"
         " \"clusters\": [{\"name\": \"c\", \"cluster\": {\"server\": \"http://127.0.0.1:8080\"}}]}",      "http://127.0.0.1:8080", NULL,         NULL,          NULL,   NULL,  NULL,          "default"},
    };
    (void)state;
    mem_free(file("ca.pem", "PEM OF CA\n"));
    mem_free(file("token", "from-a-file\n"));
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(mem) char *path = file("good", rows[i].text);
        CLEANUP(mem) char *its_token = NULL;
        CLEANUP(kube_config) struct kube_config c = {0};
        struct berth_err err = {0};
        if (kube_config_load(&(struct kube_config_where){.path = path}, &c, &err) < 0)
            fail_msg("%s: %s", rows[i].label, err.text);
        const char *const want[] = {rows[i].server, rows[i].name,  rows[i].ca,       rows[i].cert,
                                    rows[i].key,    rows[i].token, rows[i].namespace};
        assert_int_equal(kube_config_token(&c, &its_token, NULL), 0);
        const char *const got[] = {c.server, c.server_name, c.ca_pem, c.cert_pem, c.key_pem, its_token, c.namespace};
        for (size_t k = 0; k < ROWS(want); k++)
            if (!want[k] != !got[k] || (want[k] && strcmp(want[k], got[k]) != 0))
                fail_msg("%s, part %zu: \"%s\"", rows[i].label, k, got[k] ? got[k] : "(none)");
    }
}

static void invalid_kubeconfigs(void **state)
{
    static const struct {
        const char *label, *text, *says;
    } rows[] = {
        {"not YAML",                       "{",                                                                                                 "good"                                                  },
        {"no context",                     CLUSTER USER,                                                                                        "no current-context; set one"                           },
        {"a context that is not there",    "current-context: b\n" CLUSTER,                                                                      "the context does not exist"                            },
        {"a cluster that is not there",    CONTEXT USER,                                                                                        "cluster \"c\" does not exist"                          },
        {"a user that is not there",       CONTEXT CLUSTER,                                                                                     "user \"u\" does not exist"                             },
        {"no server",                      CONTEXT "clusters: [{name: c, cluster: {}}]\n" USER,                                                 "has no server"                                         },
        {"any certificate",
         CONTEXT "clusters: [{name: c, cluster: {server: \"https://api\", insecure-skip-tls-verify: true}}]\n" USER,
         "use certificate-authority"                                                                                                                                                                    },
        {"no TLS, a name like an address",
         CONTEXT "clusters: [{name: c, cluster: {server: \"http://127.example.com\"}}]\n" USER,                                                 "use https://"                                          },
        {"no TLS, a name like localhost",
         CONTEXT "clusters: [{name: c, cluster: {server: \"http://localhost.example.com\"}}]\n" USER,                                           "use https://"                                          },
        {"no TLS, user information",
         CONTEXT "clusters: [{name: c, cluster: {server: \"http://127.0.0.1@example.com\"}}]\n" USER,                                           "use https://"                                          },
        {"no TLS",                         CONTEXT "clusters: [{name: c, cluster: {server: \"http://10.0.0.1\"}}]\n" USER,                      "use https://"                                          },
        {"another protocol",               CONTEXT "clusters: [{name: c, cluster: {server: \"ftp://api\"}}]\n" USER,
         "must begin with https://"                                                                                                                                                                     },
        {"a proxy",                        CONTEXT "clusters: [{name: c, cluster: {server: \"https://api\", proxy-url: \"http://p\"}}]\n" USER,
         "proxy-url is not supported"                                                                                                                                                                   },
        {"a plugin of old",                CONTEXT CLUSTER "users: [{name: u, user: {auth-provider: {name: gcp}}}]\n",
         "\"auth-provider\" is not supported; use a token"                                                                                                                                              },
        {"a program without a name",
         CONTEXT CLUSTER "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1}}}]\n",
         "exec.command: expected the program"                                                                                                                                                           },
        {"a program of no version",        CONTEXT CLUSTER "users: [{name: u, user: {exec: {command: aws}}}]\n",
         "exec.apiVersion: must be client.authentication.k8s.io/v1 or"                                                                                                                                  },
        {"a program of an old version",
         CONTEXT CLUSTER
         "users: [{name: u, user: {exec: {command: aws, apiVersion: client.authentication.k8s.io/v1alpha1}}}]\n",                               "v1beta1, not \"client.authentication.k8s.io/v1alpha1\""},
        {"a program that asks",
         CONTEXT CLUSTER
         "users: [{name: u, user: {exec: {command: aws, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Always}}}]\n",
         "interactive programs are not supported"                                                                                                                                                       },
        {"arguments that are none",
         CONTEXT CLUSTER
         "users: [{name: u, user: {exec: {command: aws, apiVersion: client.authentication.k8s.io/v1, args: [{}]}}}]\n",                         "exec.args: must be a list"                             },
        {"an environment that is none",
         CONTEXT CLUSTER
         "users: [{name: u, user: {exec: {command: aws, apiVersion: client.authentication.k8s.io/v1, env: [{name: A=B}]}}}]\n",
         "exec.env: must be a list"                                                                                                                                                                     },
        {"half a certificate",             CONTEXT CLUSTER "users: [{name: u, user: {client-certificate-data: Q0VSVA==}}]\n",
         "must be set together"                                                                                                                                                                         },
        {"a token file that is not there", CONTEXT CLUSTER "users: [{name: u, user: {tokenFile: nowhere}}]\n",
         "nowhere"                                                                                                                                                                                      },
        {"contents that are no base64",
         CONTEXT "clusters: [{name: c, cluster: {server: \"https://api\", certificate-authority-data: \"!\"}}]\n" USER,
         "not PEM text in base64"                                                                                                                                                                       },
        {"an authority that is not there",
         CONTEXT "clusters: [{name: c, cluster: {server: \"https://api\", certificate-authority: nowhere}}]\n" USER,
         "certificate-authority: cannot read"                                                                                                                                                           },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(mem) char *path = file("good", rows[i].text);
        struct kube_config c = {0};
        struct berth_err err = {0};
        assert_true(kube_config_load(&(struct kube_config_where){.path = path}, &c, &err) < 0);
        if (!strstr(err.text, rows[i].says))
            fail_msg("%s: \"%s\"", rows[i].label, err.text);
        assert_null(c.server);
    }
}

static void kubeconfig_list(void **state)
{
    CLEANUP(mem) char *one = file("one", CLUSTER "contexts: [{name: b, context: {cluster: c, user: u}}]\n");
    CLEANUP(mem)
    char *two = file("two", CONTEXT USER "clusters: [{name: c, cluster: {server: \"https://another\"}}]\n");
    CLEANUP(mem) char *gone = path_of("gone");
    CLEANUP(str) struct str list = {0};
    (void)state;
    str_addf(&list, ":%s:%s:%s", gone, one, two);
    assert_int_equal(setenv("KUBECONFIG", list.at, 1), 0);
    for (int i = 0; i < 2; i++) {
        CLEANUP(kube_config) struct kube_config c = {0};
        assert_int_equal(kube_config_load(&(struct kube_config_where){.context = i ? "b" : NULL}, &c, NULL), 0);
        assert_string_equal(c.server, "https://api:6443"); /* from the first file */
        assert_string_equal(c.namespace, i ? "default" : "team");
        assert_string_equal(c.token, "sesame");
    }
    assert_int_equal(unsetenv("KUBECONFIG"), 0);
}

static void service_account(void **state)
{
    CLEANUP(mem) char *account = path_of("account");
    struct kube_config_where where = {.account_dir = account};
    struct berth_err err = {0};
    (void)state;
    assert_int_equal(mkdir(account, 0700), 0);
    {
        CLEANUP(kube_config) struct kube_config c = {0};
        assert_int_equal(kube_config_load(&where, &c, &err), -ENOENT);
        assert_non_null(strstr(err.text, "--kubeconfig"));
    }
    mem_free(file("account/token", "first\n"));
    mem_free(file("account/ca.crt", "PEM"));
    mem_free(file("account/namespace", "berth-system"));
    assert_int_equal(setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1), 0);
    assert_int_equal(setenv("KUBERNETES_SERVICE_PORT", "6443", 1), 0);
    CLEANUP(kube_config) struct kube_config c = {0};
    if (kube_config_load(&where, &c, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(c.server, "https://[fd00::1]:6443");
    assert_string_equal(c.namespace, "berth-system");
    assert_string_equal(c.ca_pem, "PEM");
    mem_free(file("account/token", "second\n"));
    CLEANUP(mem) char *now = NULL;
    assert_int_equal(kube_config_token(&c, &now, NULL), 0);
    assert_string_equal(now, "second");
    mem_free(file("account/token", "two\nlines"));
    CLEANUP(mem) char *bad = NULL;
    assert_int_equal(kube_config_token(&c, &bad, NULL), -EINVAL);
    assert_null(bad);
    assert_int_equal(unsetenv("KUBERNETES_SERVICE_HOST"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_kubeconfigs),
        cmocka_unit_test(invalid_kubeconfigs),
        cmocka_unit_test(kubeconfig_list),
        cmocka_unit_test(service_account),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
