/* gpu.c - GPU models as labels: "NVIDIA-A100-SXM4-80GB" is also an A100, an A100-SXM4 and an 80GB.
 *
 * Each run of words of the model is a label of the node, so that a pod may name any of them.
 */
#include "kube/object/gpu.h"

#include "kube/object/quantity.h"

#define NAME_KEY "@gpu/"
#define MEMORY_KEY "@gpu-memory"
#define MIB (INT64_C(1) << 20)
enum { WORDS_MAX = 8, MODELS_MAX = 16, NAME_MAX_BYTES = 63 };

/* Folds to lower-case letters and digits with one '-' for anything between them: users write "A100 SXM4", labels have
 * "A100-SXM4". */
static char *name_fold(struct arena *arena, const char *text, size_t len)
{
    char *name = arena_strndup(arena, text, len);
    size_t to = 0;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (plain)
            name[to++] = c;
        else if (to > 0 && name[to - 1] != '-')
            name[to++] = '-';
    }
    if (to > 0 && name[to - 1] == '-')
        to--;
    name[to] = 0;
    return name;
}

static const char *label_of(const struct kube_labels *labels, const char *own, const char *nvidia)
{
    const char *value = kube_labels_find(labels, own);
    return value ? value : kube_labels_find(labels, nvidia);
}

/* Adds a label for every run of words. */
static void names_add(struct arena *arena, const char *model, struct kube_labels *labels)
{
    const char *name = name_fold(arena, model, strlen(model)), *begin = name;
    for (int first = 0; first < WORDS_MAX && *begin; first++) {
        const char *end = begin;
        for (int last = first; last < WORDS_MAX && *end; last++) {
            end += *end == '-';
            end += strcspn(end, "-");
            kube_push(arena, labels,
                      ((struct berth_label){arena_fmt(arena, NAME_KEY "%.*s", (int)(end - begin), begin), "true"}));
        }
        begin += strcspn(begin, "-");
        begin += *begin == '-';
    }
}

void kube_gpu_labels_add(struct arena *arena, struct kube_labels *labels)
{
    const char *model = label_of(labels, KUBE_GPU_MODEL_LABEL, "nvidia.com/gpu.product");
    const char *memory = label_of(labels, KUBE_GPU_MEMORY_LABEL, "nvidia.com/gpu.memory");
    if (model && *model)
        names_add(arena, model, labels);
    if (memory && *memory)
        kube_push(arena, labels, ((struct berth_label){MEMORY_KEY, memory}));
}

static const char *models_read(struct arena *arena, const char *text, struct kube_terms *ret)
{
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, ",");
        const char *name = name_fold(arena, at, len);
        if (*name && (strlen(name) > NAME_MAX_BYTES || ret->len == MODELS_MAX))
            return "the annotation " KUBE_GPU_MODELS_NOTE
                   " has too many models or too long a name; use a list such as A100,H100";
        if (*name) {
            struct berth_expr *e = ARENA_NEW(arena, struct berth_expr);
            *e = (struct berth_expr){arena_fmt(arena, NAME_KEY "%s", name), BERTH_EXISTS, NULL, 0};
            kube_push(arena, ret, ((struct berth_term){e, 1, 0}));
        }
        at += at[len] ? len + 1 : len;
    }
    return ret->len ? NULL : "the annotation " KUBE_GPU_MODELS_NOTE " names no model; use a list such as A100,H100";
}

static const char *memory_read(struct arena *arena, const char *text, struct kube_terms *ret)
{
    int64_t bytes;
    if (!kube_quantity_parse(text, strlen(text), 1, &bytes) || bytes <= 0)
        return "the annotation " KUBE_GPU_MEMORY_NOTE " is not an amount of memory; use one such as 40Gi";
    int64_t mib = bytes / MIB + (bytes % MIB > 0);
    const char **value = arena_alloc(arena, sizeof *value);
    struct berth_expr *e = ARENA_NEW(arena, struct berth_expr);
    value[0] = arena_fmt(arena, "%lld", (long long)(mib - 1));
    *e = (struct berth_expr){MEMORY_KEY, BERTH_GT, value, 1};
    kube_push(arena, ret, ((struct berth_term){e, 1, 0}));
    return NULL;
}

const char *kube_gpu_terms(struct arena *arena, const struct kube_labels *notes, struct kube_terms *ret)
{
    const char *models = kube_labels_find(notes, KUBE_GPU_MODELS_NOTE);
    const char *memory = kube_labels_find(notes, KUBE_GPU_MEMORY_NOTE), *why = NULL;
    struct kube_terms named = {0}, large = {0};
    *ret = (struct kube_terms){0};
    if (models)
        why = models_read(arena, models, &named);
    if (memory && !why)
        why = memory_read(arena, memory, &large);
    if (!why)
        (void)kube_terms_both(arena, &named, &large, ret); /* cannot exceed the limit */
    return why;
}
