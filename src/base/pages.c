/* pages.c - copy-on-write tables. */
#include "base/pages.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"

struct page {
    _Alignas(64) atomic_uint refs;
    _Alignas(64) unsigned char data[];
};

static struct page *page_of(unsigned char *data)
{
    return (struct page *)(void *)(data - offsetof(struct page, data));
}

static struct page *page_new(size_t record)
{
    struct page *p = mem_alloc_aligned(_Alignof(struct page), sizeof *p + record * PAGE_LEN);
    atomic_init(&p->refs, 1);
    return p;
}

static void page_unref(struct page *p)
{
    if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1)
        mem_free(p);
}

void pages_init(struct pages *t, size_t record)
{
    *t = (struct pages){.record = record};
}

void pages_done(struct pages *t)
{
    for (size_t i = 0; i < t->pages_len; i++)
        page_unref(page_of(t->at[i]));
    mem_free(t->at);
    *t = (struct pages){.record = t->record};
}

void pages_share(const struct pages *t, struct pages *ret)
{
    *ret = *t;
    ret->pages_cap = t->pages_len;
    ret->at = mem_array(t->pages_len ? t->pages_len : 1, sizeof *ret->at);
    for (size_t i = 0; i < t->pages_len; i++) {
        ret->at[i] = t->at[i];
        atomic_fetch_add_explicit(&page_of(t->at[i])->refs, 1, memory_order_relaxed);
    }
}

uint32_t pages_push(struct pages *t)
{
    assert(t->len < UINT32_MAX);
    if ((size_t)t->len == t->pages_len * PAGE_LEN) {
        if (t->pages_len == t->pages_cap) {
            t->pages_cap = t->pages_cap ? t->pages_cap * 2 : 8;
            t->at = mem_resize(t->at, t->pages_cap, sizeof *t->at);
        }
        t->at[t->pages_len++] = page_new(t->record)->data;
    }
    uint32_t ix = t->len++;
    memset(pages_edit(t, ix), 0, t->record);
    return ix;
}

void *pages_edit(struct pages *t, uint32_t ix)
{
    assert(ix < t->len);
    unsigned char **slot = &t->at[ix >> PAGE_SHIFT];
    struct page *p = page_of(*slot);
    if (atomic_load_explicit(&p->refs, memory_order_acquire) > 1) {
        struct page *own = page_new(t->record);
        memcpy(own->data, p->data, t->record * PAGE_LEN);
        *slot = own->data;
        page_unref(p);
    }
    return *slot + (size_t)(ix & (PAGE_LEN - 1)) * t->record;
}
