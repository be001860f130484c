/* status.c - one table of the meanings of HTTP statuses. */
#include "kube/client/status.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/client/proto.h"
#include "wire/text/document.h"

enum { MESSAGE_MAX = 300, REASON_MAX = 64 };
enum { STATUS_MESSAGE = 3, STATUS_REASON = 4, STATUS_CODE = 6 };

struct kube_status {
    int code;
    char message[MESSAGE_MAX + 1], reason[REASON_MAX + 1];
};

static void copy_text(char *to, size_t max, const char *text, size_t len)
{
    len = len < max ? len : max;
    if (len)
        memcpy(to, text, len);
    to[len] = '\0';
}

static void read_proto(struct proto_reader r, struct kube_status *s)
{
    struct proto_field f;
    while (proto_next(&r, &f)) {
        if (f.number == STATUS_MESSAGE)
            copy_text(s->message, MESSAGE_MAX, (const char *)f.at, f.len);
        else if (f.number == STATUS_REASON)
            copy_text(s->reason, REASON_MAX, (const char *)f.at, f.len);
        else if (f.number == STATUS_CODE)
            s->code = proto_int(&f) > 0 && proto_int(&f) < 1000 ? (int)proto_int(&f) : 0;
    }
}

static void read_json(const char *body, size_t len, struct kube_status *s)
{
    CLEANUP(json) json_t *doc = NULL;
    if (document_parse(body, len, "status", &doc, NULL) < 0 || !json_is_object(doc))
        return;
    const char *message = json_string_value(json_object_get(doc, "message"));
    const char *reason = json_string_value(json_object_get(doc, "reason"));
    json_int_t code = json_integer_value(json_object_get(doc, "code"));
    copy_text(s->message, MESSAGE_MAX, message, message ? strlen(message) : 0);
    copy_text(s->reason, REASON_MAX, reason, reason ? strlen(reason) : 0);
    s->code = code > 0 && code < 1000 ? (int)code : 0;
}

static struct kube_status status_read(const char *body, size_t len)
{
    struct kube_status s = {0};
    struct proto_object o;
    if (proto_object_read(body, len, &o))
        read_proto(o.raw, &s);
    else if (len && body[0] == '{')
        read_json(body, len, &s);
    else if (str_utf8_valid(body, len))
        copy_text(s.message, MESSAGE_MAX, body, strcspn(body, "\r\n"));
    return s;
}

int kube_status_code(int status, const char *body, size_t len, struct berth_err *err)
{
    static const struct {
        int status, code;
        const char *what;
    } rows[] = {
        {400, EINVAL, "rejects the request"                             },
        {401, EACCES, "does not accept the credentials; renew the token"},
        {403, EACCES, "denies access; check the roles"                  },
        {404, ENOENT, "does not have this object or resource"           },
        {405, EINVAL, "does not support this method"                    },
        {409, EBUSY,  "reports a conflict"                              },
        {410, ESTALE, "no longer has this version"                      },
        {413, EINVAL, "rejects the request as too large"                },
        {415, EINVAL, "does not support this format"                    },
        {422, EINVAL, "rejects the object"                              },
        {429, EAGAIN, "is overloaded"                                   },
    };
    if (status >= 200 && status < 300)
        return 0;
    struct kube_status s = status_read(body, len);
    status = status ? status : s.code;
    int code = status >= 500 ? EAGAIN : EPROTO;
    const char *what = status >= 500 ? "reports an internal error" : "returned an unexpected response";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].status == status) {
            code = rows[i].code;
            what = rows[i].what;
        }
    if (status == 409 && strcmp(s.reason, "AlreadyExists") == 0)
        code = EEXIST;
    return err_set(err, code, "the API server %s (%d%s%s)%s%s", what, status, s.reason[0] ? " " : "", s.reason,
                   s.message[0] ? ": " : "", s.message);
}
