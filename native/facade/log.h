/* Lines for people, on stderr only, so that tools that read a program's output are not disturbed. */
#ifndef LAMINA_LOG_H
#define LAMINA_LOG_H

enum { LOG_ERROR = 0, LOG_WARNING = 1, LOG_INFO = 3, LOG_DEBUG = 4 };

/* Lines over this level are not written. */
extern unsigned log_level;

/* Writes "[lamina] <text>\n" in one write; errno stays as it was. */
void log_line(unsigned level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
