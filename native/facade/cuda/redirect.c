/* The loader has written the addresses of what a library imports into a table of that library. Where these entries are
 * is in the library's relocations, which name the functions. */
#include "cuda/redirect.h"

#include "shared/assertion.h"

#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct request {
    uintptr_t inside;
    const char *name;
    void *function;
    bool reached, done;
};

struct image {
    uintptr_t base;
    const ElfW(Dyn) * dynamic;
    uintptr_t sealed, sealed_end; /* what the loader has made read-only */
};

/* The value of an entry of the dynamic section, or 0. */
static uintptr_t value_of(const struct image *image, int64_t tag)
{
    for (const ElfW(Dyn) *entry = image->dynamic; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag)
            return entry->d_un.d_val;
    return 0;
}

/* Loaders replace offsets in the dynamic section by addresses, or leave them. */
static const void *table_of(const struct image *image, int64_t tag)
{
    uintptr_t value = value_of(image, tag);
    return (const void *)(value != 0 && value < image->base ? image->base + value : value);
}

static bool write_entry(const struct image *image, uintptr_t address, void *function)
{
    uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE), page = address & ~(size - 1);
    bool sealed = address >= (image->sealed & ~(size - 1)) && address < (image->sealed_end & ~(size - 1));
    ASSERT(address % sizeof(void *) == 0);
    if (sealed && mprotect((void *)page, size, PROT_READ | PROT_WRITE) != 0)
        return false;
    /* In one step, as the library may be in use already. */
    atomic_store((_Atomic(void *) *)address, function);
    if (sealed)
        mprotect((void *)page, size, PROT_READ);
    return true;
}

static void redirect_in(const struct image *image, int64_t table, size_t bytes, struct request *request)
{
    const ElfW(Rela) *relocations = table_of(image, table);
    const ElfW(Sym) *symbols = table_of(image, DT_SYMTAB);
    const char *names = table_of(image, DT_STRTAB);
    if (relocations == NULL || symbols == NULL || names == NULL)
        return;
    for (size_t i = 0; i < bytes / sizeof *relocations; i++) {
        uint64_t symbol = ELF64_R_SYM(relocations[i].r_info);
        if (symbol != 0 && relocations[i].r_addend == 0 && strcmp(names + symbols[symbol].st_name, request->name) == 0)
            request->done |= write_entry(image, image->base + relocations[i].r_offset, request->function);
    }
}

static bool has_name_of_driver(const char *path)
{
    static const char name[] = "libcuda.so";
    const char *slash = strrchr(path, '/');
    return strncmp(slash == NULL ? path : slash + 1, name, sizeof name - 1) == 0;
}

static int visit_library(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct request *request = argument;
    struct image image = {.base = info->dlpi_addr};
    bool first = false;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = image.base + part->p_vaddr;
        first |= part->p_type == PT_LOAD && request->inside >= start && request->inside < start + part->p_memsz;
        if (part->p_type == PT_DYNAMIC)
            image.dynamic = (const void *)start;
        if (part->p_type == PT_GNU_RELRO) {
            image.sealed = start;
            image.sealed_end = start + part->p_memsz;
        }
    }
    request->reached |= first;
    if (image.dynamic != NULL && (first || (request->reached && has_name_of_driver(info->dlpi_name)))) {
        redirect_in(&image, DT_RELA, value_of(&image, DT_RELASZ), request);
        redirect_in(&image, DT_JMPREL, value_of(&image, DT_PLTRELSZ), request);
    }
    return 0;
}

bool redirect_import(const void *inside, const char *name, void *function)
{
    struct request request = {.inside = (uintptr_t)inside, .name = name, .function = function};
    if (inside != NULL)
        dl_iterate_phdr(visit_library, &request);
    return request.done;
}
