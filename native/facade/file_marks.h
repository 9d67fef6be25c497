/* Marks on open files, by which processes recognise a file that one gave to the other.
 *
 * A physical handle travels between processes as a file descriptor. All of NVIDIA's are of one device file, so what the
 * file is tells nothing; but sender and receiver have the same open file, and a lock that belongs to an open file (an "open
 * file description lock") is seen as one's own through it, and as somebody's through any other. The mark is such a lock,
 * shared and far beyond what anybody would lock, at a place that the key says. It goes with the last descriptor. Nobody is
 * ever kept waiting. */
#ifndef LAMINA_FILE_MARKS_H
#define LAMINA_FILE_MARKS_H

#include <stdbool.h>
#include <stdint.h>

/* So many files can bear marks of one key at a time. */
enum { FILE_MARKS = 16 };

/* Marks the file; `number` tells it from other files of the key. Keys are multiples of FILE_MARKS below 2^62. False
 * where the file cannot be marked. */
bool file_mark(int file, uint64_t key, unsigned number);

/* Whether the file bears a mark of the key, and surely this file. */
bool file_is_marked(int file, uint64_t key);

#endif
