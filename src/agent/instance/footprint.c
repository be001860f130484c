/* footprint.c - drops code pages of shared libraries that only their initialization used: libcurl's dependencies (ssh,
 * ldap, kerberos, a second crypto library) execute several megabytes of code once, when they are loaded.
 */
#include "agent/instance/footprint.h"

#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Tells whether the library has relocations in its code (DT_TEXTREL). Code and read-only data of other libraries equal
 * the bytes of the file, so dropping the pages loses nothing. Writable segments and patched libraries are left
 * alone. */
static bool is_patched(const struct dl_phdr_info *info)
{
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        for (const ElfW(Dyn) *d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr); d->d_tag != DT_NULL;
             d++)
            if (d->d_tag == DT_TEXTREL || (d->d_tag == DT_FLAGS && (d->d_un.d_val & DF_TEXTREL)))
                return true;
    }
    return false;
}

static int drop(struct dl_phdr_info *info, size_t size, void *ctx)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    (void)size;
    (void)ctx;
    if (!info->dlpi_name || info->dlpi_name[0] != '/' || is_patched(info))
        return 0; /* skips this program, whose code is needed, and the vDSO, which is no file */
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t from = (info->dlpi_addr + p->p_vaddr + page - 1) & ~(page - 1);
        uintptr_t to = (info->dlpi_addr + p->p_vaddr + p->p_memsz) & ~(page - 1);
        if (p->p_type == PT_LOAD && !(p->p_flags & PF_W) && from < to)
            (void)madvise((void *)from, to - from, MADV_DONTNEED);
    }
    return 0;
}

void footprint_trim(void)
{
    (void)dl_iterate_phdr(drop, NULL);
    (void)malloc_trim(0);
}
