/* nvml_fake.c - a fake NVML for tests: its state is a text file, read at every call, so that a test can change it at
 * any time.
 *
 * A separate shared library, never linked. $BERTH_NVML_WORLD names the file, with lines of these forms:
 *
 *     driver VERSION
 *     fails CODE                  nvmlInit returns this code
 *     hangs FOREVER               nvmlInit and nvmlDeviceGetCount block while this line exists
 *     miscounts CODE              nvmlDeviceGetCount returns this code
 *     gpu uuid=U model=M_WITH_UNDERSCORES minor=N memory=MIB [used=MIB] [busy=PERCENT] [ecc=N] [remap=1] [mode=N]
 *         [mig=1] [nvlinks=N] [lost=CODE]
 *                                 `lost`: every query of this GPU returns the code; 1000: it is not counted either
 *     part of=U uuid=U model=M memory=MIB gi=N ci=N [used=MIB]
 *     process on=U pid=N memory=MIB [busy=PERCENT]      `on` a GPU or a MIG device; memory=-1: unknown
 *     link a=U b=U level=N | level=nvlink
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "machine/gpu/nvml_parts.h"

#define API __attribute__((visibility("default")))
enum { LINE_MAX_BYTES = 512, THINGS_MAX = 128, UNCOUNTED = 1000, MIB_BITS = 20, OTHER_ARGUMENT = 2 };

/* A handle is a UUID at a fixed address. */
struct nvml_device {
    char uuid[NVML_UUID_MAX];
};

/* Iterates over the lines of one kind. */
struct fake_lines {
    FILE *file;
    char text[LINE_MAX_BYTES];
};

static bool lines_next(struct fake_lines *l, const char *kind)
{
    size_t len = strlen(kind);
    const char *world = getenv("BERTH_NVML_WORLD");
    if (!l->file)
        l->file = world ? fopen(world, "re") : NULL;
    while (l->file && fgets(l->text, sizeof l->text, l->file)) {
        l->text[strcspn(l->text, "\n")] = '\0';
        if (strncmp(l->text, kind, len) == 0 && l->text[len] == ' ')
            return true;
    }
    return false;
}

static void lines_cleanup(struct fake_lines *l)
{
    if (l->file)
        (void)fclose(l->file);
}
#define LINES __attribute__((cleanup(lines_cleanup))) struct fake_lines

static bool word(const char *line, const char *key, char ret[static LINE_MAX_BYTES])
{
    size_t len = strlen(key);
    for (const char *at = strchr(line, ' '); at; at = strchr(at, ' ')) {
        at++;
        if (strncmp(at, key, len) == 0 && at[len] == '=') {
            (void)snprintf(ret, LINE_MAX_BYTES, "%.*s", (int)strcspn(at + len + 1, " "), at + len + 1);
            return true;
        }
    }
    return false;
}

static long number(const char *line, const char *key, long otherwise)
{
    char text[LINE_MAX_BYTES];
    return word(line, key, text) ? strtol(text, NULL, 10) : otherwise;
}

static bool line_has(const char *line, const char *key, const char *value)
{
    char text[LINE_MAX_BYTES];
    return word(line, key, text) && strcmp(text, value) == 0;
}

static struct nvml_device *handle(const char *uuid)
{
    static struct nvml_device devices[THINGS_MAX];
    size_t i = 0;
    while (i + 1 < THINGS_MAX && devices[i].uuid[0] && strcmp(devices[i].uuid, uuid) != 0)
        i++;
    (void)snprintf(devices[i].uuid, sizeof devices[i].uuid, "%.95s", uuid);
    return &devices[i];
}

/* Finds the line of a GPU or a MIG device; returns 0, or the code of a lost one. */
static int find(const struct nvml_device *d, char ret[static LINE_MAX_BYTES])
{
    static const char *const kinds[] = {"gpu", "part"};
    char of[LINE_MAX_BYTES];
    for (size_t k = 0; k < 2; k++) {
        LINES l = {0};
        while (lines_next(&l, kinds[k])) {
            if (!line_has(l.text, "uuid", d->uuid))
                continue;
            memcpy(ret, l.text, LINE_MAX_BYTES);
            if (k == 1 && word(l.text, "of", of)) {
                char gpu[LINE_MAX_BYTES];
                return find(handle(of), gpu);
            }
            long lost = number(l.text, "lost", 0);
            return lost == UNCOUNTED ? NVML_LOST : (int)lost;
        }
    }
    return NVML_LOST;
}

static int text_answer(const char *from, char *text, unsigned size)
{
    (void)snprintf(text, size, "%s", from);
    for (char *at = text; *at; at++)
        *at = *at == '_' ? ' ' : *at;
    return NVML_SUCCESS;
}

static int number_answer(const struct nvml_device *d, const char *key, long otherwise, unsigned *ret)
{
    char line[LINE_MAX_BYTES];
    int rc = find(d, line);
    long is = rc == 0 ? number(line, key, otherwise) : -1;
    if (rc == 0 && is < 0)
        return NVML_NOT_SUPPORTED;
    if (rc == 0)
        *ret = (unsigned)is;
    return rc;
}

/* ---- library ---------------------------------------------------------------------------------------------------- */

static bool hangs(void)
{
    LINES l = {0};
    return lines_next(&l, "hangs");
}

static void hang(void)
{
    static const struct timespec nap = {.tv_nsec = 20000000};
    while (hangs())
        (void)nanosleep(&nap, NULL);
}

API int nvmlInit_v2(void);
API int nvmlInit_v2(void)
{
    hang();
    LINES l = {0};
    return lines_next(&l, "fails") ? (int)strtol(l.text + strlen("fails "), NULL, 10) : NVML_SUCCESS;
}

API int nvmlShutdown(void);
API int nvmlShutdown(void)
{
    return NVML_SUCCESS;
}

API const char *nvmlErrorString(int code);
API const char *nvmlErrorString(int code)
{
    return code == NVML_LOST             ? "GPU is lost"
           : code == NVML_RESET_REQUIRED ? "GPU requires reset"
           : code == NVML_MISMATCH       ? "Driver/library version mismatch"
                                         : "Unknown Error";
}

API int nvmlSystemGetDriverVersion(char *text, unsigned size);
API int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    LINES l = {0};
    return text_answer(lines_next(&l, "driver") ? l.text + strlen("driver ") : "1.0", text, size);
}

API int nvmlDeviceGetCount_v2(unsigned *ret);
API int nvmlDeviceGetCount_v2(unsigned *ret)
{
    hang();
    LINES wrong = {0}, l = {0};
    *ret = 0;
    if (lines_next(&wrong, "miscounts"))
        return (int)strtol(wrong.text + strlen("miscounts "), NULL, 10);
    while (lines_next(&l, "gpu"))
        *ret += number(l.text, "lost", 0) != UNCOUNTED;
    return NVML_SUCCESS;
}

API int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **ret);
API int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **ret)
{
    LINES l = {0};
    char uuid[LINE_MAX_BYTES];
    while (lines_next(&l, "gpu")) {
        long lost = number(l.text, "lost", 0);
        if (lost == UNCOUNTED || index-- > 0 || !word(l.text, "uuid", uuid))
            continue;
        *ret = handle(uuid);
        return (int)lost;
    }
    return OTHER_ARGUMENT;
}

/* ---- one GPU ---------------------------------------------------------------------------------------------------- */

API int nvmlDeviceGetUUID(struct nvml_device *d, char *text, unsigned size);
API int nvmlDeviceGetUUID(struct nvml_device *d, char *text, unsigned size)
{
    (void)snprintf(text, size, "%s", d->uuid);
    return NVML_SUCCESS;
}

API int nvmlDeviceGetName(struct nvml_device *d, char *text, unsigned size);
API int nvmlDeviceGetName(struct nvml_device *d, char *text, unsigned size)
{
    char line[LINE_MAX_BYTES], model[LINE_MAX_BYTES];
    int rc = find(d, line);
    return rc ? rc : text_answer(word(line, "model", model) ? model : "Fake", text, size);
}

API int nvmlDeviceGetMinorNumber(struct nvml_device *d, unsigned *ret);
API int nvmlDeviceGetMinorNumber(struct nvml_device *d, unsigned *ret)
{
    return number_answer(d, "minor", -1, ret);
}

API int nvmlDeviceGetPciInfo_v3(struct nvml_device *d, struct nvml_pci *ret);
API int nvmlDeviceGetPciInfo_v3(struct nvml_device *d, struct nvml_pci *ret)
{
    unsigned minor = 0;
    int rc = number_answer(d, "minor", -1, &minor);
    if (rc == 0)
        (void)snprintf(ret->bus_id, sizeof ret->bus_id, "00000000:%02x:00.0", minor + 1);
    return rc;
}

API int nvmlDeviceGetMemoryInfo(struct nvml_device *d, struct nvml_memory *ret);
API int nvmlDeviceGetMemoryInfo(struct nvml_device *d, struct nvml_memory *ret)
{
    char line[LINE_MAX_BYTES];
    int rc = find(d, line);
    if (rc)
        return rc;
    ret->total = (unsigned long long)number(line, "memory", 0) << MIB_BITS;
    ret->used = (unsigned long long)number(line, "used", 0) << MIB_BITS;
    ret->free = ret->total - ret->used;
    return NVML_SUCCESS;
}

API int nvmlDeviceGetUtilizationRates(struct nvml_device *d, struct nvml_rates *ret);
API int nvmlDeviceGetUtilizationRates(struct nvml_device *d, struct nvml_rates *ret)
{
    ret->memory = 0;
    return number_answer(d, "busy", 0, &ret->gpu);
}

API int nvmlDeviceGetComputeMode(struct nvml_device *d, unsigned *ret);
API int nvmlDeviceGetComputeMode(struct nvml_device *d, unsigned *ret)
{
    return number_answer(d, "mode", 0, ret);
}

API int nvmlDeviceGetTotalEccErrors(struct nvml_device *d, int type, int counter, unsigned long long *ret);
API int nvmlDeviceGetTotalEccErrors(struct nvml_device *d, int type, int counter, unsigned long long *ret)
{
    unsigned errors = 0;
    int rc = number_answer(d, "ecc", 0, &errors);
    *ret = type == NVML_ECC_UNCORRECTED && counter == NVML_ECC_VOLATILE ? errors : 0;
    return rc;
}

API int nvmlDeviceGetRemappedRows(struct nvml_device *d, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                                  unsigned *failed);
API int nvmlDeviceGetRemappedRows(struct nvml_device *d, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                                  unsigned *failed)
{
    *corrected = *uncorrected = *pending = 0;
    return number_answer(d, "remap", 0, failed);
}

/* ---- processes -------------------------------------------------------------------------------------------------- */

API int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *d, unsigned *len, struct nvml_process_info *ret);
API int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *d, unsigned *len, struct nvml_process_info *ret)
{
    char line[LINE_MAX_BYTES];
    unsigned room = *len;
    int rc = find(d, line);
    LINES l = {0};
    *len = 0;
    while (rc == 0 && lines_next(&l, "process")) {
        if (!line_has(l.text, "on", d->uuid))
            continue;
        if (*len == room)
            return NVML_INSUFFICIENT_SIZE;
        long mib = number(l.text, "memory", 0);
        ret[(*len)++] = (struct nvml_process_info){
            .pid = (unsigned)number(l.text, "pid", 0),
            .used = mib < 0 ? NVML_NOT_AVAILABLE : (unsigned long long)mib << MIB_BITS,
        };
    }
    return rc;
}

API int nvmlDeviceGetProcessUtilization(struct nvml_device *d, struct nvml_sample *ret, unsigned *len,
                                        unsigned long long since_us);
API int nvmlDeviceGetProcessUtilization(struct nvml_device *d, struct nvml_sample *ret, unsigned *len,
                                        unsigned long long since_us)
{
    char line[LINE_MAX_BYTES];
    unsigned room = *len;
    int rc = find(d, line);
    LINES l = {0};
    *len = 0;
    while (rc == 0 && lines_next(&l, "process") && *len < room)
        if (line_has(l.text, "on", d->uuid) && number(l.text, "busy", -1) >= 0)
            ret[(*len)++] = (struct nvml_sample){.pid = (unsigned)number(l.text, "pid", 0),
                                                 .at_us = since_us + 1,
                                                 .sm = (unsigned)number(l.text, "busy", 0)};
    return rc == 0 && *len == 0 ? NVML_NOT_FOUND : rc;
}

/* ---- MIG devices and links -------------------------------------------------------------------------------------- */

API int nvmlDeviceGetMigMode(struct nvml_device *d, unsigned *now, unsigned *later);
API int nvmlDeviceGetMigMode(struct nvml_device *d, unsigned *now, unsigned *later)
{
    int rc = number_answer(d, "mig", 0, now);
    *later = *now;
    return rc;
}

API int nvmlDeviceGetMaxMigDeviceCount(struct nvml_device *d, unsigned *ret);
API int nvmlDeviceGetMaxMigDeviceCount(struct nvml_device *d, unsigned *ret)
{
    (void)d;
    *ret = 7;
    return NVML_SUCCESS;
}

API int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *d, unsigned index, struct nvml_device **ret);
API int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *d, unsigned index, struct nvml_device **ret)
{
    LINES l = {0};
    char uuid[LINE_MAX_BYTES];
    while (lines_next(&l, "part"))
        if (line_has(l.text, "of", d->uuid) && index-- == 0 && word(l.text, "uuid", uuid)) {
            *ret = handle(uuid);
            return NVML_SUCCESS;
        }
    return NVML_NOT_FOUND;
}

API int nvmlDeviceGetGpuInstanceId(struct nvml_device *d, unsigned *ret);
API int nvmlDeviceGetGpuInstanceId(struct nvml_device *d, unsigned *ret)
{
    return number_answer(d, "gi", -1, ret);
}

API int nvmlDeviceGetComputeInstanceId(struct nvml_device *d, unsigned *ret);
API int nvmlDeviceGetComputeInstanceId(struct nvml_device *d, unsigned *ret)
{
    return number_answer(d, "ci", -1, ret);
}

API int nvmlDeviceGetNvLinkState(struct nvml_device *d, unsigned link, unsigned *ret_active);
API int nvmlDeviceGetNvLinkState(struct nvml_device *d, unsigned link, unsigned *ret_active)
{
    unsigned links = 0;
    int rc = number_answer(d, "nvlinks", 0, &links);
    *ret_active = link < links;
    return rc;
}

static bool linked(const struct nvml_device *a, const struct nvml_device *b, char ret[static LINE_MAX_BYTES])
{
    LINES l = {0};
    while (lines_next(&l, "link"))
        if ((line_has(l.text, "a", a->uuid) && line_has(l.text, "b", b->uuid)) ||
            (line_has(l.text, "a", b->uuid) && line_has(l.text, "b", a->uuid)))
            return word(l.text, "level", ret);
    return false;
}

API int nvmlDeviceGetP2PStatus(struct nvml_device *a, struct nvml_device *b, int what, unsigned *ret);
API int nvmlDeviceGetP2PStatus(struct nvml_device *a, struct nvml_device *b, int what, unsigned *ret)
{
    char level[LINE_MAX_BYTES];
    *ret = what == NVML_P2P_NVLINK && linked(a, b, level) && strcmp(level, "nvlink") == 0 ? 0 : 1;
    return NVML_SUCCESS;
}

API int nvmlDeviceGetTopologyCommonAncestor(struct nvml_device *a, struct nvml_device *b, unsigned *ret);
API int nvmlDeviceGetTopologyCommonAncestor(struct nvml_device *a, struct nvml_device *b, unsigned *ret)
{
    char level[LINE_MAX_BYTES];
    if (!linked(a, b, level))
        return NVML_NOT_SUPPORTED;
    *ret = (unsigned)strtoul(level, NULL, 10);
    return NVML_SUCCESS;
}
