#include "shared/slot_lock.h"

#include "shared/kept_errno.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* Not in the headers of old C libraries. */
enum { OFD_SETLK = 37, KEPT_BYTES = 4096 };

int slot_lock_open(const char *path)
{
    return path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
}

void slot_lock_close(int file)
{
    if (file >= 0)
        close(file);
}

void *slot_lock_keep(int file)
{
    void *kept = mmap(NULL, KEPT_BYTES, PROT_NONE, MAP_SHARED, file, 0);
    if (kept == MAP_FAILED)
        return NULL;
    if (madvise(kept, KEPT_BYTES, MADV_DONTFORK) == 0)
        return kept;
    slot_lock_release(kept);
    return NULL;
}

void slot_lock_release(void *kept)
{
    munmap(kept, KEPT_BYTES);
}

static int set_lock(int file, uint64_t offset, short type)
{
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)offset, .l_len = 1};
    return fcntl(file, OFD_SETLK, &range);
}

enum slot_lock slot_lock(int file, uint64_t offset)
{
    KEEP_ERRNO;
    if (file < 0)
        return SLOT_NO_LOCKS;
    if (set_lock(file, offset, F_WRLCK) == 0)
        return SLOT_LOCKED;
    if (errno == EAGAIN || errno == EACCES)
        return SLOT_TAKEN;
    return errno == EINVAL ? SLOT_NO_LOCKS : SLOT_LOCK_FAILED;
}

void slot_unlock(int file, uint64_t offset)
{
    if (file >= 0)
        set_lock(file, offset, F_UNLCK);
}
