#include "cuda/kernel_names.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL 0x10 /* in the st_other of a symbol: a kernel, not a function that only kernels call */
#define FAT_BINARY 0xba55ed50
#define FAT_BINARY_WRAPPER 0x466243b1

static bool add(struct kernel_names *n, const char *name, size_t length)
{
    char *names = realloc(n->names, n->bytes + length + 1);
    if (names == NULL)
        return false;
    memcpy(names + n->bytes, name, length);
    names[n->bytes + length] = '\0';
    n->names = names;
    n->bytes += length + 1;
    return true;
}

static bool read_symbols(struct kernel_names *n, const char *image, const Elf64_Shdr *symbols,
                         const Elf64_Shdr *strings)
{
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= symbols->sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        memcpy(&symbol, image + symbols->sh_offset + at, sizeof symbol);
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !(symbol.st_other & KERNEL) ||
            symbol.st_name >= strings->sh_size)
            continue;
        const char *name = image + strings->sh_offset + symbol.st_name;
        if (!add(n, name, strnlen(name, strings->sh_size - symbol.st_name)))
            return false;
    }
    return true;
}

/* As for the driver, the headers of the image are the only statement of its size. */
static bool read_elf(struct kernel_names *n, const char *image)
{
    Elf64_Ehdr header;
    memcpy(&header, image, sizeof header);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr))
        return true;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(image + header.e_shoff);
    for (int i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section, strings;
        memcpy(&section, &sections[i], sizeof section);
        if (section.sh_type != SHT_SYMTAB || section.sh_link >= header.e_shnum)
            continue;
        memcpy(&strings, &sections[section.sh_link], sizeof strings);
        if (!read_symbols(n, image, &section, &strings))
            return false;
    }
    return true;
}

static bool read_ptx(struct kernel_names *n, const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$%";
    for (const char *at = strstr(text, ".entry"); at != NULL; at = strstr(at, ".entry")) {
        at += strlen(".entry");
        at += strspn(at, " \t\r\n");
        size_t length = strspn(at, letters);
        if (length > 0 && !add(n, at, length))
            return false;
    }
    return true;
}

/* PTX begins with its version, after blanks and comments. */
static bool is_ptx(const char *text)
{
    for (;;) {
        text += strspn(text, " \t\r\n");
        const bool line = strncmp(text, "//", 2) == 0;
        if (!line && strncmp(text, "/*", 2) != 0)
            return strncmp(text, ".version", strlen(".version")) == 0;
        const char *end = strstr(text, line ? "\n" : "*/");
        if (end == NULL)
            return false;
        text = end + (line ? 1 : 2);
    }
}

static unsigned int magic_of(const void *image)
{
    unsigned int magic = 0;
    memcpy(&magic, image, strnlen(image, sizeof magic));
    return magic;
}

bool kernel_names_is_code(const void *image)
{
    const unsigned int magic = magic_of(image);
    return magic == FAT_BINARY || magic == FAT_BINARY_WRAPPER || memcmp(&magic, ELFMAG, SELFMAG) == 0 ||
           is_ptx(image) || strncmp(image, "mib=", 4) == 0 || strcmp(image, "simgpu") == 0;
}

static int target_of(const char *text)
{
    int target = 0;
    const char *at = strstr(text, ".target");
    return at != NULL && sscanf(at, ".target sm_%d", &target) == 1 ? target : 0;
}

bool kernel_names_read(struct kernel_names *out, const void *image)
{
    const unsigned int magic = magic_of(image);
    *out = (struct kernel_names){0};
    if (magic == FAT_BINARY || magic == FAT_BINARY_WRAPPER)
        return true;
    bool elf = memcmp(&magic, ELFMAG, SELFMAG) == 0;
    out->known = elf || is_ptx(image);
    if (!out->known)
        return true;
    out->target = elf ? 0 : target_of(image);
    bool done = elf ? read_elf(out, image) : read_ptx(out, image);
    if (!done)
        kernel_names_free(out);
    return done;
}

void kernel_names_free(struct kernel_names *n)
{
    free(n->names);
    *n = (struct kernel_names){0};
}

bool kernel_names_have(const struct kernel_names *n, const char *name)
{
    size_t length = strlen(name) + 1;
    for (size_t at = 0; n->known && at < n->bytes; at += strlen(n->names + at) + 1)
        if (n->bytes - at >= length && memcmp(n->names + at, name, length) == 0)
            return true;
    return !n->known;
}
