/* Marks distinguish several open files of the same file. Argument: the file. */
#include "memory/file_marks.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    const uint64_t first = UINT64_C(5) << 52, second = first + FILE_MARKS;
    assert(count == 2);
    int a = open(arguments[1], O_RDWR), b = open(arguments[1], O_RDWR), again = open(arguments[1], O_RDWR);
    assert(!file_is_marked(a, first) && !file_mark(a, first, FILE_MARKS));
    assert(file_mark(a, first, 0) && file_mark(b, second, 0) && file_mark(again, first, FILE_MARKS - 1));
    int received = dup(a);
    close(a);
    assert(file_is_marked(received, first) && !file_is_marked(received, second));
    assert(file_is_marked(b, second) && !file_is_marked(b, first));
    assert(file_is_marked(again, first) && !file_is_marked(again, second));
    int other = open(arguments[1], O_RDWR);
    assert(!file_is_marked(other, first) && !file_is_marked(other, second));
    close(b);
    assert(!file_is_marked(received, second) && !file_is_marked(other, second) && !file_is_marked(-1, first));
    puts("ok");
    return 0;
}
