/* Assertions of invariants, in builds with -DLAMINA_ASSERTIONS: debug builds and the sanitizer builds of the tests.
 *
 * Assert what this process alone decides: arguments, private tables, states. Never assert what is read from the usage
 * file or comes from the program or the driver. Any process of the container can write the usage file, so its contents
 * are input, and bad input must not end the program. In other builds the condition is not evaluated. */
#ifndef LAMINA_ASSERTION_H
#define LAMINA_ASSERTION_H

#ifdef LAMINA_ASSERTIONS

#include <stdio.h>

/* Traps instead of calling abort(), which the facade does not import. */
#define ASSERT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "[lamina] %s:%d: assertion failed: %s\n", __FILE__, __LINE__, #condition);                 \
            __builtin_trap();                                                                                          \
        }                                                                                                              \
    } while (0)

#else

#define ASSERT(condition) ((void)sizeof((condition) ? 1 : 0))

#endif

#endif
