/* What both facades share: the container's files and the real library behind them. */
#ifndef LAMINA_FACADE_H
#define LAMINA_FACADE_H

#include "account.h"
#include "lamina_layout.h"

#define EXPORT __attribute__((visibility("default")))

struct facade {
    struct lamina_limits limits; /* a private copy: read once */
    struct account account;
    const struct lamina_arbiter *arbiter; /* of zeros when there is none */
    char directory[4096]; /* where the real libraries are */
    void *driver;         /* of dlopen */
};

/* Opens files and real library at the first call. NULL when anything is missing or wrong: then there is no device,
 * and one line on stderr has said why. */
const struct facade *facade_open(void);

/* The entry points of the real library, by their number in the table; see trampoline.S. */
extern void *lamina_table[];

/* Given by each facade: */
extern const char facade_library[];       /* file name of the real library */
extern const char facade_names[][64];   /* of the entry points; without pointers, which the loader would have to fill in */
int facade_denied(void);  /* the answer of every entry point when facade_open fails */
int facade_missing(void); /* the answer for a function that the real library lacks */

/* The real function behind an entry, as an address; NULL when the real library lacks it. */
void *facade_real(unsigned entry);

#endif
