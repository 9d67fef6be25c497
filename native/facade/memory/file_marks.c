#include "memory/file_marks.h"

#include "shared/assertion.h"
#include "shared/kept_errno.h"

#include <fcntl.h>

#ifndef F_OFD_GETLK /* Linux 3.15 */
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#endif

static struct flock lock_range(short type, uint64_t start, unsigned length)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)start, .l_len = length};
}

bool file_mark(int file, uint64_t key, unsigned number)
{
    KEEP_ERRNO;
    ASSERT(key % FILE_MARKS == 0);
    ASSERT(key < UINT64_C(1) << 62);
    struct flock mark = lock_range(F_RDLCK, key + number, 1);
    return number < FILE_MARKS && fcntl(file, F_OFD_SETLK, &mark) == 0;
}

/* Whether a lock conflicts with ours: with F_GETLK also one of this open file, otherwise only one of another file. */
static bool is_locked(int file, int command, uint64_t start, unsigned length)
{
    struct flock lock = lock_range(F_WRLCK, start, length);
    return fcntl(file, command, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool file_is_marked(int file, uint64_t key)
{
    KEEP_ERRNO;
    if (!is_locked(file, F_GETLK, key, FILE_MARKS))
        return false;
    for (unsigned number = 0; number < FILE_MARKS; number++) {
        struct flock other = lock_range(F_WRLCK, key + number, 1);
        if (is_locked(file, F_GETLK, key + number, 1) && fcntl(file, F_OFD_GETLK, &other) == 0 &&
            other.l_type == F_UNLCK)
            return true;
    }
    return false;
}
