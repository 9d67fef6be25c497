#include "view/entries.h"

/* Only the addresses are used here, so one declaration serves every signature. */
#define HOOK(i, name, since) __attribute__((visibility("default"))) extern const char name[];
#define PASS(i, name, since) HOOK(i, name, since)
#define FORBID(i, name, since) HOOK(i, name, since)
#include TABLE
#undef HOOK
#undef PASS
#undef FORBID

#define HOOK(i, name, since) {name, since, true},
#define PASS(i, name, since) {name, since, false},
#define FORBID(i, name, since) {name, since, true},
const struct entry entries[] = {
#include TABLE
};
const unsigned entries_count = sizeof entries / sizeof entries[0];
