/* A program that made a call of the driver finds errno as the driver leaves it, whatever the facade asked the system
 * for meanwhile. */
#ifndef LAMINA_KEPT_ERRNO_H
#define LAMINA_KEPT_ERRNO_H

#include <errno.h>

static inline void errno_restore(const int *before)
{
    errno = *before;
}

/* A declaration: when the block ends, errno is what it was here. */
#define KEEP_ERRNO const int errno_before __attribute__((cleanup(errno_restore), unused)) = errno

#endif
