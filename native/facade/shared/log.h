/* Log lines, on stderr only, so that tools which read a program's output are not disturbed. */
#ifndef LAMINA_LOG_H
#define LAMINA_LOG_H

enum { LOG_ERROR = 0, LOG_WARNING = 1, LOG_INFO = 3, LOG_DEBUG = 4 };

/* Lines above this level are not written. */
extern unsigned log_level;

/* Writes "[lamina] <text>\n" in one write. Does not change errno. */
void log_line(unsigned level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
