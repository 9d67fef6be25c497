/* Two tables of hashes, so that the time of a query does not depend on where its name is.
 *
 * Example: cuMemAlloc, cuMemAlloc_v2 and cuMemAllocAsync are entries 1 to 3. The bases of their names are cuMemAlloc
 * twice, and cuMemAllocAsync. A query for cuMemAlloc goes through the chain of its hash: entries 1 and 2. */
#include "view/forms.h"

#include "view/entries.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum { BUCKETS = 2048 };
_Static_assert((int)ENTRIES < (int)BUCKETS && ENTRIES < UINT16_MAX, "tables");

static pthread_once_t names_once = PTHREAD_ONCE_INIT, addresses_once = PTHREAD_ONCE_INIT;
static uint16_t first_of_name[BUCKETS], next_of_name[ENTRIES];
static uint16_t first_of_address[BUCKETS], next_of_address[ENTRIES];
static const void *real_addresses[ENTRIES]; /* of the replaced entries */

static bool is_per_thread_suffix(const char *suffix)
{
    return strcmp(suffix, "_ptsz") == 0 || strcmp(suffix, "_ptds") == 0;
}

/* What follows a name that begins with a symbol, if it is a form of it. */
static bool is_form_suffix(const char *rest)
{
    if (rest[0] == 0)
        return true;
    if (rest[0] != '_')
        return false;
    if (rest[0] == '_' && rest[1] == 'v' && rest[2] >= '2' && rest[2] <= '9')
        rest += 3;
    return rest[0] == 0 || is_per_thread_suffix(rest);
}

/* Of the part of the name before its first underscore, which no base has. */
static unsigned hash_name(const char *name)
{
    uint32_t hash = UINT32_C(2166136261);
    for (const char *at = name; *at != 0 && *at != '_'; at++)
        hash = (hash ^ (unsigned char)*at) * UINT32_C(16777619);
    return (hash ^ hash >> 15) % BUCKETS;
}

static unsigned hash_address(const void *address)
{
    return (unsigned)(((uint64_t)(uintptr_t)address >> 2) * UINT64_C(0x9e3779b97f4a7c15) >> 53) % BUCKETS;
}

static void add_first(uint16_t *first, uint16_t *next, unsigned bucket, unsigned entry)
{
    next[entry] = first[bucket];
    first[bucket] = (uint16_t)entry;
}

static void clear(uint16_t *first)
{
    for (unsigned i = 0; i < BUCKETS; i++)
        first[i] = NO_ENTRY;
}

static void sort_names(void)
{
    clear(first_of_name);
    for (unsigned i = ENTRIES; i-- > 0;)
        add_first(first_of_name, next_of_name, hash_name(table_names[i]), i);
}

static void sort_addresses(void)
{
    clear(first_of_address);
    for (unsigned i = ENTRIES; i-- > 0;) {
        real_addresses[i] = entries[i].replaced ? table_find_real(i) : NULL;
        if (real_addresses[i] != NULL)
            add_first(first_of_address, next_of_address, hash_address(real_addresses[i]), i);
    }
}

static bool is_form(unsigned entry, const char *symbol, size_t length)
{
    return length < sizeof table_names[0] && memcmp(table_names[entry], symbol, length) == 0 &&
           is_form_suffix(table_names[entry] + length);
}

static unsigned find_form(const char *symbol, unsigned entry)
{
    const size_t length = strlen(symbol);
    while (entry != NO_ENTRY && !is_form(entry, symbol, length))
        entry = next_of_name[entry];
    return entry;
}

unsigned forms_first(const char *symbol)
{
    pthread_once(&names_once, sort_names);
    return find_form(symbol, first_of_name[hash_name(symbol)]);
}

unsigned forms_next(const char *symbol, unsigned entry)
{
    return find_form(symbol, next_of_name[entry]);
}

bool forms_include_replaced(const char *symbol, bool *any)
{
    pthread_once(&names_once, sort_names);
    const size_t length = strlen(symbol);
    *any = false;
    for (unsigned i = first_of_name[hash_name(symbol)]; i != NO_ENTRY; i = next_of_name[i]) {
        if (!is_form(i, symbol, length))
            continue;
        *any = true;
        if (entries[i].replaced)
            return true;
    }
    return false;
}

bool forms_is_per_thread(unsigned entry)
{
    size_t length = strlen(table_names[entry]);
    return length > 5 && is_per_thread_suffix(table_names[entry] + length - 5);
}

unsigned forms_find_real(const char *symbol, const void *real)
{
    pthread_once(&addresses_once, sort_addresses);
    unsigned other = NO_ENTRY;
    const size_t length = strlen(symbol);
    for (unsigned i = first_of_address[hash_address(real)]; i != NO_ENTRY; i = next_of_address[i]) {
        if (real_addresses[i] != real)
            continue;
        if (is_form(i, symbol, length))
            return i;
        other = i;
    }
    return other;
}
