/* Another function in place of one that a library imports, for that library alone. */
#ifndef LAMINA_REDIRECT_H
#define LAMINA_REDIRECT_H

#include <stdbool.h>

/* Lets the library of which `inside` is an address call `function` where it calls what it imports as `name`. The same
 * holds for libraries with the file name of a driver that were loaded after it, as a driver may be a loader of the real
 * one. All others keep what they import. False when no such import was found. */
bool redirect_import(const void *inside, const char *name, void *function);

#endif
