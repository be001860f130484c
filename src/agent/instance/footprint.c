/* footprint.c - the libraries that an HTTP client brings along set themselves up when they are loaded, several megabytes of
 * code that is never run again: ssh, ldap, kerberos, a second cryptography. */
#include "agent/instance/footprint.h"

#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Code and constants are the file's own bytes: to drop them changes nothing. A library that writes into its own code when it
 * is loaded says so (DT_TEXTREL), and is left alone; so is what is writable. */
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
        return 0; /* this program itself is needed, and the kernel's part is no file */
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
