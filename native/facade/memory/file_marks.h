/* Marks on open files, by which a process recognizes a file that another one gave it.
 *
 * A physical handle travels between processes as a file descriptor. All of NVIDIA's are of one device file, so the file
 * itself says nothing. But sender and receiver have the same open file, and a lock that belongs to an open file (an
 * "open file description lock") appears as one's own through that file, and as another's through any other. The mark is
 * such a lock: shared, at an offset given by the key, far beyond what any program would lock. It goes with the last
 * descriptor, and no process ever waits for it. */
#ifndef LAMINA_FILE_MARKS_H
#define LAMINA_FILE_MARKS_H

#include <stdbool.h>
#include <stdint.h>

/* How many files can have marks of one key at a time. */
enum { FILE_MARKS = 16 };

/* Marks the file; `number` distinguishes files with the same key. Keys are multiples of FILE_MARKS below 2^62. False
 * when the file cannot be marked. */
bool file_mark(int file, uint64_t key, unsigned number);

/* Whether this file, and not only another one, has a mark of the key. */
bool file_is_marked(int file, uint64_t key);

#endif
