/* Starts as a program with a GPU does. Arguments:
 *   init    calls cuInit and prints how many ns that took
 *   ready   prints "ready", reads a time, then makes a context and prints the time at which it had one
 *   idle    calls cuInit, prints "ready" and waits for a line */
#include "bench.h"

#include <string.h>

static void say_ready(void)
{
    puts("ready");
    fflush(stdout);
}

int main(int count, char **arguments)
{
    char line[64];
    const char *what = count == 2 ? arguments[1] : "";
    bench_find();
    if (strcmp(what, "init") == 0) {
        uint64_t before = clock_ns(CLOCK_MONOTONIC);
        need(cuda.cuInit(0), "cuInit");
        printf("%llu\n", (unsigned long long)(clock_ns(CLOCK_MONOTONIC) - before));
        return 0;
    }
    if (strcmp(what, "idle") == 0) {
        need(cuda.cuInit(0), "cuInit");
        say_ready();
        return fgets(line, sizeof line, stdin) == NULL;
    }
    if (strcmp(what, "ready") != 0)
        return 2;
    say_ready();
    if (fgets(line, sizeof line, stdin) == NULL)
        return 2;
    wait_until(strtoull(line, NULL, 10));
    bench_begin();
    printf("%llu\n", (unsigned long long)clock_ns(CLOCK_MONOTONIC));
    fflush(stdout);
    return fgets(line, sizeof line, stdin) == NULL;
}
