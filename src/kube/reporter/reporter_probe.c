/* reporter_probe.c - detects GPUs by their vendors' drivers. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/client/clock.h"
#include "kube/reporter/reporter.h"

#define PATIENCE_NS (INT64_C(20) * 1000000000) /* for nvidia-smi: waking up the driver takes long */
#define MIB (INT64_C(1) << 20)
enum { FILE_MAX = 64 * 1024 };
extern char **environ;

/* ---- combining GPUs --------------------------------------------------------------------------------------------- */

/* Converts to a label value: letters, digits, '-', '_' and '.', at most 63, starting and ending with a letter or
 * digit. */
static void model_text(const char *text, size_t len, char ret[static 64])
{
    size_t to = 0;
    for (size_t i = 0; i < len && to < 63; i++) {
        char c = text[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (word || ((c == '_' || c == '.') && to > 0))
            ret[to++] = c;
        else if (to > 0 && ret[to - 1] != '-')
            ret[to++] = '-';
    }
    while (to > 0 && (ret[to - 1] == '-' || ret[to - 1] == '_' || ret[to - 1] == '.'))
        to--;
    ret[to] = 0;
}

static void gpu_add(struct gpu_report *r, const char *model, size_t len, int64_t memory_mib)
{
    char text[64];
    model_text(model, len, text);
    if (r->count == 0) {
        (void)memcpy(r->model, text, sizeof text);
        r->memory_mib = memory_mib;
    } else {
        if (strcmp(r->model, text) != 0)
            r->model[0] = 0;
        r->memory_mib = memory_mib < r->memory_mib ? memory_mib : r->memory_mib;
    }
    r->count++;
}

/* ---- files and programs ----------------------------------------------------------------------------------------- */

static bool file_read(const char *path, struct str *ret)
{
    char buf[4096];
    FILE *f = fopen(path, "re");
    size_t len;
    if (!f)
        return false;
    while ((len = fread(buf, 1, sizeof buf, f)) > 0 && ret->len < FILE_MAX)
        str_add_bytes(ret, buf, len);
    (void)fclose(f);
    return true;
}

/* Reads to the end of the file; false on timeout. */
static bool pipe_read(int fd, struct str *ret)
{
    char buf[4096];
    int64_t end_ns = kube_clock_ns() + PATIENCE_NS;
    for (;;) {
        int64_t left_ms = (end_ns - kube_clock_ns()) / 1000000;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int rc = left_ms > 0 ? poll(&p, 1, (int)left_ms) : 0;
        if (rc < 0 && errno == EINTR)
            continue;
        ssize_t len = rc > 0 ? read(fd, buf, sizeof buf) : -1;
        if (len == 0)
            return true;
        if (len < 0 || ret->len > FILE_MAX)
            return false;
        str_add_bytes(ret, buf, (size_t)len);
    }
}

/* Returns the output of the program if it exits with status 0. */
static bool program_run(const char *program, char *const *argv, struct str *ret)
{
    int ends[2], status = 0;
    pid_t pid = -1;
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    (void)posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int rc = posix_spawnp(&pid, program, &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    bool ok = rc == 0 && pipe_read(ends[0], ret);
    (void)close(ends[0]);
    if (rc != 0)
        return false;
    if (!ok)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- vendors ---------------------------------------------------------------------------------------------------- */

/* Parses lines like "NVIDIA H200, 143771". */
static bool nvidia_smi_read(const char *root, struct gpu_report *r)
{
    CLEANUP(str) struct str program = {0}, text = {0};
    char *const argv[] = {"nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits", NULL};
    if (*root)
        str_addf(&program, "%s/usr/bin/nvidia-smi", root);
    else
        str_add(&program, "nvidia-smi");
    if (!program_run(program.at, argv, &text))
        return false;
    for (const char *at = str_text(&text); *at;) {
        size_t len = strcspn(at, "\n");
        const char *comma = memrchr(at, ',', len);
        if (comma) {
            long long mib = strtoll(comma + 1, NULL, 10);
            gpu_add(r, at, (size_t)(comma - at), mib > 0 ? mib : 0);
        }
        at += at[len] ? len + 1 : len;
    }
    return r->count > 0;
}

/* /proc/driver/nvidia/gpus/BUS/information: "Model: \t\t NVIDIA H200". */
static void nvidia_read(const char *root, struct gpu_report *r)
{
    CLEANUP(str) struct str folder = {0};
    struct dirent *e;
    str_addf(&folder, "%s/proc/driver/nvidia/gpus", root);
    DIR *dir = opendir(folder.at);
    while (dir && (e = readdir(dir))) {
        CLEANUP(str) struct str path = {0}, text = {0};
        str_addf(&path, "%s/%s/information", folder.at, e->d_name);
        if (e->d_name[0] == '.' || !file_read(path.at, &text))
            continue;
        const char *model = strstr(str_text(&text), "Model:");
        model = model ? model + 6 : "";
        model += strspn(model, " \t");
        gpu_add(r, model, strcspn(model, "\n"), 0);
    }
    if (dir)
        (void)closedir(dir);
}

/* /sys/class/drm/cardN/device: the memory in bytes; not every card has a name. */
static void amd_read(const char *root, struct gpu_report *r)
{
    CLEANUP(str) struct str folder = {0};
    struct dirent *e;
    str_addf(&folder, "%s/sys/class/drm", root);
    DIR *dir = opendir(folder.at);
    while (dir && (e = readdir(dir))) {
        CLEANUP(str) struct str memory = {0}, product = {0}, path = {0};
        if (strncmp(e->d_name, "card", 4) != 0 || strchr(e->d_name, '-')) /* names with '-' are connectors */
            continue;
        str_addf(&path, "%s/%s/device/mem_info_vram_total", folder.at, e->d_name);
        if (!file_read(path.at, &memory))
            continue;
        str_clear(&path);
        str_addf(&path, "%s/%s/device/product_name", folder.at, e->d_name);
        (void)file_read(path.at, &product);
        long long bytes = strtoll(str_text(&memory), NULL, 10);
        gpu_add(r, str_text(&product), strcspn(str_text(&product), "\n"), bytes > 0 ? bytes / MIB : 0);
    }
    if (dir)
        (void)closedir(dir);
}

struct gpu_report gpu_report_probe(const char *root)
{
    struct gpu_report r = {0};
    if (!nvidia_smi_read(root, &r)) {
        r = (struct gpu_report){0};
        nvidia_read(root, &r);
    }
    amd_read(root, &r);
    return r;
}
