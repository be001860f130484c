/* secret.c - `berth secret set`; the other secret verbs are in cli/show: delete.c and get.c. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/lib/command.h"
#include "cli/show/object.h"
#include "wire/text/document.h"

enum { VALUE_BYTES_MAX = 64 * 1024 };

static void close_cleanup(const int *fd)
{
    if (*fd > STDERR_FILENO)
        (void)close(*fd);
}

/* Reads a whole file, or standard input ("-"). The result is a new reference. */
static int file_value(const struct cli *cli, const char *path, json_t **ret)
{
    CLEANUP(mem) char *text = mem_alloc(VALUE_BYTES_MAX + 1);
    CLEANUP(close) int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n = -1;

    while (fd >= 0 && len <= VALUE_BYTES_MAX && (n = read(fd, text + len, VALUE_BYTES_MAX + 1 - len)) != 0) {
        if (n < 0 && errno != EINTR)
            break;
        len += n > 0 ? (size_t)n : 0;
    }
    if (fd < 0 || n < 0)
        return cli_fail(cli, EXIT_FAILED, "cannot read %s: %s", path, strerror(errno));
    if (len > VALUE_BYTES_MAX)
        return cli_fail(cli, EXIT_FAILED, "%s is larger than %d bytes", path, VALUE_BYTES_MAX);
    json_t *value = memchr(text, 0, len) ? NULL : json_stringn(text, len);
    explicit_bzero(text, len);
    if (!value)
        return cli_fail(cli, EXIT_FAILED, "%s is not UTF-8; encode it, for example with base64", path);
    *ret = value;
    return EXIT_OK;
}

/* Adds KEY=VALUE, or KEY=@FILE with the contents of FILE. */
static int pair_add(const struct cli *cli, const char *word, json_t *data)
{
    const char *mark = strchr(word, '=');
    json_t *value = NULL;

    if (!mark || mark == word) /* the word is not printed: it may be the secret */
        return cli_fail(cli, EXIT_USAGE,
                        "expected KEY=VALUE or KEY=@FILE after the name; see 'berth secret set --help'");
    CLEANUP(mem) char *key = mem_strdup(word);
    key[mark - word] = '\0';
    if (json_object_get(data, key))
        return cli_fail(cli, EXIT_USAGE, "duplicate key %s", key);
    int rc = EXIT_OK;
    if (mark[1] == '@')
        rc = file_value(cli, mark + 2, &value);
    else
        value = json_string(mark + 1);
    if (rc == EXIT_OK && !value)
        rc = cli_fail(cli, EXIT_FAILED, "the value of %s is not UTF-8", key);
    if (rc == EXIT_OK)
        (void)json_object_set_new(data, key, value);
    return rc;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    const struct change_values *v = values;
    CLEANUP(json) json_t *body = json_pack("{s:{}}", "data");
    CLEANUP(str) struct str path = {0};
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(api) struct api api = {0};
    int rc = EXIT_OK;

    for (size_t i = 1; i < operands->len && rc == EXIT_OK; i++)
        rc = pair_add(cli, operands->at[i], json_object_get(body, "data"));
    if (rc == EXIT_OK)
        rc = api_open(&api, cli);
    if (rc != EXIT_OK)
        return rc;
    str_add(&path, "/v1/secrets");
    path_add(&path, operands->at[0]);
    struct api_request request = {
        .method = "PUT", .path = path.at, .body = body, .dry_run = v->dry_run, .secret = true};
    rc = api_do(&api, &request, &answer);
    if (rc != EXIT_OK)
        return rc;
    const char *id = json_string_value(json_object_get(answer.body, "id"));
    object_done_print(cli, "secret", id ? id : operands->at[0], "set", v->dry_run);
    return EXIT_OK;
}

const struct command secret_set_command = {
    .name = "secret set",
    .operands = "NAME KEY=VALUE|KEY=@FILE...",
    .operands_min = 2,
    .operands_max = OPERANDS_ANY,
    .summary = "Create a secret or replace its contents.",
    .text = "Apps and jobs see a secret as files (their key `files`). It cannot be read back: it is "
            "stored encrypted, and lists show only the names and sizes of its keys. VALUE is visible "
            "in the process list while this command runs; KEY=@FILE reads the value from a file, "
            "KEY=@- from standard input.\n\n"
            "Running instances keep the old contents; 'berth app restart' gives them the new ones.",
    .examples = "  berth secret set db password=@password.txt user=shop\n"
                "  pass show db | berth secret set db password=@-",
    .options = change_options,
    .options_len = 1,
    .values_size = sizeof(struct change_values),
    .section = SECTION_WORK,
    .talks = true,
    .run = run,
};
