/* What both libraries share: the container's files and the real library. */
#ifndef LAMINA_FACADE_H
#define LAMINA_FACADE_H

#include "lamina_layout.h"
#include "shared/account.h"

#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))

struct facade {
    struct lamina_limits limits; /* a private copy, read once */
    struct account account;
    const struct lamina_arbiter *arbiter; /* all zeros when there is none */
    struct lamina_signal *signal;         /* one that no neighbor sees when there is none */
    char files[4096];                     /* where all of these are */
    char usage_path[4096];                /* of the usage file; the account refers to it */
    char directory[4096];                 /* where the real libraries are */
    void *driver;                         /* from dlopen */
};

/* Opens the files and the real library at the first call. NULL when anything is missing or wrong: then there is no
 * device, and one line on stderr has said why. */
const struct facade *facade_open(void);

/* Defined by each of the two libraries. */

/* The file name of the real library. */
extern const char facade_library[];

/* Whether the library answers a call of this name. Otherwise the program has not initialized it yet. */
bool facade_is_ready(const char *name, bool forbidden);

/* What every entry point answers when facade_open fails, or when the library is not ready. */
int facade_denied(void);

/* The answer for a function that the real library lacks. */
int facade_missing(void);

/* Called once, when all files are open and before facade_open returns for the first time. */
void facade_opened(const struct facade *facade);

#endif
