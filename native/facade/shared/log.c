#include "shared/log.h"

#include "shared/assertion.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

unsigned log_level = LOG_WARNING;

void log_line(unsigned level, const char *format, ...)
{
    if (level > log_level)
        return;
    int saved = errno;
    char line[512] = "[lamina] ";
    size_t used = 9, room = sizeof line - used - 1;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line + used, room, format, arguments);
    va_end(arguments);
    if (length > 0)
        used += (size_t)length < room ? (size_t)length : room - 1;
    ASSERT(used < sizeof line);
    line[used++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, used);
    (void)written; /* a closed stderr is the program's choice */
    errno = saved;
}
