#include "memory/images.h"

#include "shared/kept_errno.h"

#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MACHINE_CUDA = 190 };

static int is_code(const Elf64_Ehdr *header)
{
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
           header->e_machine == MACHINE_CUDA && header->e_shentsize == sizeof(Elf64_Shdr);
}

static uint64_t loadable_bytes(const Elf64_Ehdr *header)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < header->e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, (const char *)header + header->e_shoff + i * sizeof section, sizeof section);
        if (section.sh_flags & SHF_ALLOC)
            sum = section.sh_size > UINT64_MAX - sum ? UINT64_MAX : sum + section.sh_size;
    }
    return sum;
}

uint64_t image_bytes(const void *image)
{
    Elf64_Ehdr header;
    if (image == NULL || memcmp(image, ELFMAG, SELFMAG) != 0) /* source text may be shorter than a header */
        return 0;
    memcpy(&header, image, sizeof header);
    return is_code(&header) ? loadable_bytes(image) : 0;
}

uint64_t image_bytes_of_file(const char *path)
{
    KEEP_ERRNO;
    uint64_t bytes = 0;
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    off_t end = lseek(file, 0, SEEK_END);
    size_t size = end > 0 ? (size_t)end : 0;
    const Elf64_Ehdr *header = size < sizeof *header ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (header == MAP_FAILED)
        return 0;
    if (is_code(header) && header->e_shoff <= size && header->e_shnum * sizeof(Elf64_Shdr) <= size - header->e_shoff)
        bytes = loadable_bytes(header);
    munmap((void *)(uintptr_t)header, size);
    return bytes;
}
