#include "berthd/dashboard.h"

#include <string.h>
#include <strings.h>

#include "net/http/http.h"

/* Allows scripts, styles and requests of the same origin only, and no frames. */
#define POLICY                                                                                                         \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "                    \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static const struct dashboard_file *file_find(const char *path)
{
    for (size_t i = 0; i < dashboard_files_len; i++)
        if (strcmp(dashboard_files[i].path, path) == 0)
            return &dashboard_files[i];
    return NULL;
}

/* Returns whether a list like `gzip, deflate;q=0.5` contains the word without a weight. A weight counts as a refusal:
 * the file is then sent uncompressed. */
static bool list_has(const char *list, const char *word)
{
    size_t len = strlen(word);

    while (list && *list) {
        list += strspn(list, " ,");
        size_t item = strcspn(list, " ,");
        if (item == len && strncasecmp(list, word, len) == 0)
            return true;
        list += item;
    }
    return false;
}

bool dashboard_answer(struct http_request *x)
{
    const char *method = http_method(x);
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return false;
    const struct dashboard_file *f = file_find(http_path(x));
    if (!f)
        return false;
    bool forever = strncmp(f->path, "/assets/", 8) == 0; /* the name changes with the content */
    bool gzip = list_has(http_header(x, "Accept-Encoding"), "gzip");
    const struct http_header headers[] = {
        {"ETag",                           f->etag                                                     },
        {"Cache-Control",                  forever ? "public, max-age=31536000, immutable" : "no-cache"},
        {"Content-Security-Policy",        POLICY                                                      },
        {"Referrer-Policy",                "no-referrer"                                               },
        {"Vary",                           "Accept-Encoding"                                           },
        {gzip ? "Content-Encoding" : NULL, "gzip"                                                      },
        {NULL,                             NULL                                                        },
    };
    if (list_has(http_header(x, "If-None-Match"), f->etag))
        http_answer(x, 304, headers, NULL, "", 0);
    else
        http_answer(x, 200, headers, f->type, gzip ? f->gzip : f->at, gzip ? f->gzip_len : f->len);
    return true;
}
