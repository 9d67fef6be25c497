/* Reads a limits file, and a usage file where one is named, and prints what is wrong with them, or "sound". */
#include "shared/limits.h"

#include <stdio.h>

static char limits[1 << 16], usage[1 << 22];

static size_t read_all(const char *path, char *into, size_t size)
{
    FILE *file = fopen(path, "rb");
    size_t length = file == NULL ? 0 : fread(into, 1, size, file);
    if (file != NULL)
        fclose(file);
    return length;
}

int main(int count, char **arguments)
{
    if (count < 2)
        return 2;
    size_t size = read_all(arguments[1], limits, sizeof limits);
    const char *why = limits_check(limits, size);
    if (why == NULL && count > 2) {
        size = read_all(arguments[2], usage, sizeof usage);
        why = usage_check((const struct lamina_usage *)usage, size, (const struct lamina_limits *)limits);
    }
    puts(why == NULL ? "sound" : why);
    return 0;
}
