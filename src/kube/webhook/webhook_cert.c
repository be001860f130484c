/* webhook_cert.c - `berth-kube webhook-cert`: a certificate for the webhook, signed by an authority created for it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/flag.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/client/clock.h"
#include "kube/webhook/webhook.h"
#include "net/tls/tls.h"

#define PROGRAM "berth-kube webhook-cert"
enum { EXIT_USAGE = 2 };

struct cert_options {
    const char *dir, *service;
    bool help;
};

#define AT(field) offsetof(struct cert_options, field)
static const struct flag flags[] = {
    {"dir",     FLAG_TEXT,   AT(dir),     "DIR",            0, 0, "folder for the files"             },
    {"service", FLAG_TEXT,   AT(service), "NAME.NAMESPACE", 0, 0, "Service that the API server calls"},
    {"help",    FLAG_SWITCH, AT(help),    NULL,             0, 0, "print this help"                  },
};
#undef AT
enum { FLAGS = sizeof flags / sizeof *flags };

static void help(FILE *to)
{
    (void)fprintf(to, "berth-kube webhook-cert - creates a certificate for berth-kube's webhook.\n\n"
                      "usage: " PROGRAM " --dir DIR --service NAME.NAMESPACE\n\n");
    flags_print(flags, FLAGS, to);
    (void)fprintf(
        to, "\nCreates DIR/ca-cert.pem and DIR/ca-key.pem (an authority, kept if it exists), DIR/webhook-cert.pem and\n"
            "DIR/webhook-key.pem, and prints the caBundle of the ValidatingWebhookConfiguration.\n"
            "\nexample:\n"
            "  berth-kube webhook-cert --dir certs --service berth-kube.berth-system\n"
            "  kubectl create secret tls berth-kube-webhook -n berth-system --cert=certs/webhook-cert.pem \\\n"
            "    --key=certs/webhook-key.pem\n"
            "\nexit codes: 0 success, 1 failure, 2 invalid command line\n");
}

/* Writes the file atomically. */
static int file_put(const char *dir, const char *name, const char *text, struct berth_err *err)
{
    CLEANUP(str) struct str path = {0}, part = {0};
    str_addf(&path, "%s/%s", dir, name);
    str_addf(&part, "%s.new", path.at);
    FILE *f = fopen(part.at, "we");
    bool ok = f && fputs(text, f) >= 0;
    ok = f && fclose(f) == 0 && ok;
    if (!ok || rename(part.at, path.at) < 0) {
        int code = errno;
        (void)unlink(part.at);
        return err_set(err, code, "cannot write %s: %s", path.at, strerror(code));
    }
    return 0;
}

static int make(const struct cert_options *o, FILE *out, struct berth_err *err)
{
    struct tls_identity ca = {0}, id = {0};
    CLEANUP(str) struct str svc = {0}, whole = {0}, short_name = {0}, bundle = {0};
    str_addf(&svc, "%s.svc", o->service);
    str_addf(&whole, "%s.svc.cluster.local", o->service);
    str_add_bytes(&short_name, o->service, strcspn(o->service, "."));
    const char *const names[] = {svc.at, whole.at, o->service, short_name.at, NULL};
    int64_t now_ns = kube_wall_ns();
    int rc = tls_ca_ensure(o->dir, now_ns, &ca, err);
    if (rc == 0)
        rc = tls_server_cert(&ca, o->dir, "webhook", names, now_ns, &id, err);
    if (rc == 0)
        rc = file_put(o->dir, "webhook-cert.pem", id.cert_pem, err);
    if (rc == 0) {
        str_add_base64(&bundle, ca.cert_pem, strlen(ca.cert_pem));
        (void)fprintf(out, "%s\n", bundle.at);
    }
    tls_identity_done(&ca);
    tls_identity_done(&id);
    return rc;
}

static int options_check(const struct cert_options *o, struct berth_err *err)
{
    const char *dot = o->service ? strchr(o->service, '.') : NULL;
    if (!o->dir)
        return err_set(err, EINVAL, "--dir is required: the folder for the files");
    if (!dot || dot == o->service || !dot[1] || strchr(dot + 1, '.'))
        return err_set(err, EINVAL, "--service must be NAME.NAMESPACE such as berth-kube.berth-system, not '%s'",
                       o->service ? o->service : "");
    return 0;
}

int kube_webhook_cert(int argc, char *const *argv, FILE *out)
{
    struct cert_options o = {0};
    struct berth_err err = {0};
    int rc = flags_read(PROGRAM, flags, FLAGS, argc, argv, &o, &err);
    if (rc == 0 && o.help) {
        help(out);
        return fflush(out) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    if (rc == 0)
        rc = options_check(&o, &err);
    int status = rc < 0 ? EXIT_USAGE : EXIT_SUCCESS;
    if (rc == 0 && make(&o, out, &err) < 0)
        status = EXIT_FAILURE;
    if (status != EXIT_SUCCESS)
        (void)fprintf(stderr, PROGRAM ": %s\n", err.text);
    else if (fflush(out) != 0)
        status = EXIT_FAILURE;
    return status;
}
