/* image_name.c - parses the image reference of an instance. */
#include "machine/image/image_name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool image_digest_valid(const char *text)
{
    return strncmp(text, "sha256:", 7) == 0 && strspn(text + 7, "0123456789abcdef") == 64 && text[7 + 64] == '\0';
}

bool image_path_valid(const char *path)
{
    if (path[0] != '/' || strlen(path) >= IMAGE_PATH_MAX || strspn(path, "/") == strlen(path))
        return false;
    for (const char *at = path; *at;) {
        at += strspn(at, "/");
        size_t len = strcspn(at, "/");
        if ((len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.'))
            return false;
        at += len;
    }
    return true;
}

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT "0123456789"

static bool is_alnum(char c)
{
    return c && strchr(LOWER UPPER DIGIT, c);
}

static bool tag_valid(const char *tag)
{
    size_t len = strlen(tag);
    return len > 0 && len < IMAGE_TAG_MAX && strspn(tag, LOWER UPPER DIGIT "_.-") == len && tag[0] != '.' &&
           tag[0] != '-';
}

/* Returns the length of the host before the first '/', if it cannot be a path component: with a dot, a port, or
 * "localhost". */
static size_t host_len(const char *repository)
{
    size_t len = strcspn(repository, "/");
    if (repository[len] != '/')
        return 0;
    bool host = memchr(repository, '.', len) || memchr(repository, ':', len) ||
                (len == 9 && strncmp(repository, "localhost", 9) == 0);
    return host ? len : 0;
}

static bool host_valid(const char *host, size_t len)
{
    const char *colon = memchr(host, ':', len);
    size_t name = colon ? (size_t)(colon - host) : len;
    if (name == 0 || strspn(host, LOWER UPPER DIGIT ".-") < name || !is_alnum(host[0]))
        return false;
    return !colon || (len - name - 1 > 0 && strspn(colon + 1, DIGIT) == len - name - 1);
}

/* Components of lower-case letters and digits, with '.', '_' and '-' inside. */
static bool path_parts_valid(const char *path)
{
    for (;;) {
        size_t len = strcspn(path, "/");
        if (len == 0 || strspn(path, LOWER DIGIT "._-") < len || !is_alnum(path[0]) || !is_alnum(path[len - 1]))
            return false;
        if (path[len] == '\0')
            return true;
        path += len + 1;
    }
}

static bool is_local(const char *repository, size_t len)
{
    const char *colon = memchr(repository, ':', len);
    size_t name = colon ? (size_t)(colon - repository) : len;
    return (name == 9 && strncmp(repository, "localhost", 9) == 0) ||
           (name > 4 && strncmp(repository, "127.", 4) == 0 && strspn(repository, DIGIT ".") >= name);
}

static int named_read(const char *text, struct image_name *ret, struct berth_err *err)
{
    if (strlen(text) >= IMAGE_NAME_MAX)
        return err_set(err, EINVAL, "image: a name has at most %d characters", IMAGE_NAME_MAX - 1);
    (void)snprintf(ret->name, sizeof ret->name, "%s", text);
    (void)snprintf(ret->repository, sizeof ret->repository, "%s", text);
    char *at = strchr(ret->repository, '@');
    if (at) {
        *at = '\0';
        if (!image_digest_valid(at + 1))
            return err_set(err, EINVAL, "image %s: expected sha256: and 64 hexadecimal digits after the @", text);
        (void)snprintf(ret->digest, sizeof ret->digest, "%s", at + 1);
    }
    char *slash = strrchr(ret->repository, '/'), *colon = strchr(slash ? slash : ret->repository, ':');
    if (colon) {
        *colon = '\0';
        if (!tag_valid(colon + 1))
            return err_set(err, EINVAL, "image %s: a tag may contain only letters, digits, '_', '.' and '-'", text);
        (void)snprintf(ret->tag, sizeof ret->tag, "%s", colon + 1);
    }
    size_t host = host_len(ret->repository);
    if ((host && !host_valid(ret->repository, host)) || !path_parts_valid(ret->repository + (host ? host + 1 : 0)))
        return err_set(err, EINVAL,
                       "image: expected NAME:TAG such as registry.lab:5000/team/app:1.2, or oci:/path:TAG; found %s",
                       text);
    ret->plain_http = is_local(ret->repository, host);
    ret->kind = IMAGE_NAMED;
    return 0;
}

static int layout_read(const char *text, struct image_name *ret, struct berth_err *err)
{
    if (strlen(text) >= IMAGE_PATH_MAX)
        return err_set(err, EINVAL, "image: the path of a layout is too long");
    (void)snprintf(ret->path, sizeof ret->path, "%s", text);
    char *slash = strrchr(ret->path, '/'), *colon = slash ? strrchr(slash, ':') : NULL;
    if (colon) {
        *colon = '\0';
        if (!tag_valid(colon + 1))
            return err_set(err, EINVAL, "image oci:%s: a tag may contain only letters, digits, '_', '.' and '-'", text);
        (void)snprintf(ret->tag, sizeof ret->tag, "%s", colon + 1);
    }
    if (!image_path_valid(ret->path))
        return err_set(err, EINVAL, "image oci:%s: expected an absolute path without \"..\"", text);
    ret->kind = IMAGE_LAYOUT;
    return 0;
}

static int text_of(const json_t *config, const char *key, const char **ret, struct berth_err *err)
{
    const json_t *value = json_object_get(config, key);
    *ret = NULL;
    if (!value || json_is_null(value))
        return 0;
    const char *text = json_string_value(value);
    if (!text || strlen(text) != json_string_length(value) || !*text)
        return err_set(err, EINVAL, "%s: expected text", key);
    *ret = text;
    return 0;
}

bool image_is_vm(const json_t *config)
{
    const char *runtime = json_string_value(json_object_get(config, "runtime"));
    return runtime && strcmp(runtime, "vm") == 0;
}

static int disk_read(const json_t *config, struct image_name *ret, struct berth_err *err)
{
    const char *image = NULL, *sum = NULL;
    int rc = text_of(config, "image", &image, err);
    rc = rc < 0 ? rc : text_of(json_object_get(config, "vm"), "sha256", &sum, err);
    if (rc < 0 || !image)
        return rc;
    if (strlen(image) >= IMAGE_PATH_MAX)
        return err_set(err, EINVAL, "image: the path or URL is too long");
    (void)snprintf(ret->path, sizeof ret->path, "%s", image);
    if (strncmp(image, "https://", 8) != 0 && strncmp(image, "http://", 7) != 0) {
        ret->kind = IMAGE_FILE;
        return image_path_valid(image)
                   ? 0
                   : err_set(err, EINVAL, "image: expected a URL or an absolute path without \"..\"");
    }
    ret->kind = IMAGE_URL;
    (void)snprintf(ret->digest, sizeof ret->digest, "sha256:%.64s", sum ? sum : "");
    return image_digest_valid(ret->digest) ? 0 : err_set(err, EINVAL, "image: a URL needs vm.sha256");
}

int image_name_read(const json_t *config, struct image_name *ret, struct berth_err *err)
{
    struct image_name n = {0};
    const char *rootfs = NULL, *image = NULL, *pull = NULL;
    int rc = 0;
    if (image_is_vm(config)) {
        rc = disk_read(config, &n, err);
        if (rc == 0)
            *ret = n;
        return rc;
    }
    rc = text_of(config, "rootfs", &rootfs, err);
    rc = rc < 0 ? rc : text_of(config, "image", &image, err);
    rc = rc < 0 ? rc : text_of(config, "pull", &pull, err);
    if (rc < 0)
        return rc;
    if (pull && strcmp(pull, "always") != 0 && strcmp(pull, "missing") != 0)
        return err_set(err, EINVAL, "pull: expected `always` or `missing`, found %s", pull);
    n.pull_always = pull && strcmp(pull, "always") == 0;
    if (rootfs && image)
        return err_set(err, EINVAL, "use an image or a rootfs, not both");
    if (!rootfs && !image)
        return err_set(err, EINVAL, "a container needs an image or a rootfs");
    if (rootfs) {
        if (!image_path_valid(rootfs))
            return err_set(err, EINVAL, "rootfs %s: expected an absolute path without \"..\", and not / itself",
                           rootfs);
        (void)snprintf(n.path, sizeof n.path, "%s", rootfs);
        n.kind = IMAGE_FOLDER;
    } else if (strncmp(image, "oci:", 4) == 0) {
        rc = layout_read(image + 4, &n, err);
    } else {
        rc = named_read(image, &n, err);
    }
    if (rc == 0)
        *ret = n;
    return rc;
}
