/* cuGetProcAddress: the driver says which function it would give for name, version and flags. If the facade replaces
 * that function, its own function for the same form is returned instead.
 *
 * What was not reviewed does not exist. A name that is not in the table is not found, as dlsym does not find it either.
 * The same goes for a form that is newer than the table, of a function whose known forms are replaced. CUDA's own
 * libraries cope with both, because they also run on older drivers. New forms of functions that are only passed on are
 * the driver's.
 *
 * Example: the table has cuMemAlloc and cuMemAlloc_v2, which is of version 3020. A program asks for "cuMemAlloc" at
 * version 12000. The driver gives the address of its cuMemAlloc_v2. by_address finds it among the real addresses, and
 * the program gets the facade's cuMemAlloc_v2. */
#include "cuda/hooks.h"
#include "shared/assertion.h"
#include "view/entries.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const void **real_addresses; /* of the replaced entries, by their number */

static void resolve_all(void)
{
    const void **addresses = calloc(entries_count, sizeof *addresses);
    for (unsigned i = 0; addresses != NULL && i < entries_count; i++)
        if (entries[i].replaced)
            addresses[i] = table_find_real(i);
    real_addresses = addresses;
}

static bool per_thread(const char *name)
{
    size_t length = strlen(name);
    return length > 5 && (strcmp(name + length - 5, "_ptsz") == 0 || strcmp(name + length - 5, "_ptds") == 0);
}

/* Whether `name` is `symbol`, or a later or per-thread form of it. */
static bool is_form_of(const char *name, const char *symbol)
{
    size_t length = strlen(symbol);
    if (strncmp(name, symbol, length) != 0)
        return false;
    const char *rest = name + length;
    if (rest[0] == '_' && rest[1] == 'v' && rest[2] >= '2' && rest[2] <= '9')
        rest += 3;
    return rest[0] == 0 || strcmp(rest, "_ptsz") == 0 || strcmp(rest, "_ptds") == 0;
}

/* The form for a version, by our own table: for drivers whose addresses are not those of their exported names. */
static const struct entry *by_name(const char *symbol, int version, cuuint64_t flags, bool replaced_only)
{
    bool wants_per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    const struct entry *best = NULL;
    for (unsigned i = 0; i < entries_count; i++) {
        const struct entry *entry = &entries[i];
        const char *name = table_names[i];
        if (!is_form_of(name, symbol) || entry->since > version || (replaced_only && !entry->replaced))
            continue;
        if (per_thread(name) && !wants_per_thread)
            continue;
        if (best == NULL || entry->since > best->since ||
            (entry->since == best->since && per_thread(name) && !per_thread(table_names[best - entries])))
            best = entry;
    }
    return best;
}

/* What the table says about a name in all its forms. */
static enum known { UNKNOWN, PASSED, REPLACED } classify_symbol(const char *symbol)
{
    enum known found = symbol[0] == 0 ? PASSED : UNKNOWN; /* an empty name is no function */
    for (unsigned i = 0; i < entries_count && found != REPLACED; i++)
        if (is_form_of(table_names[i], symbol))
            found = entries[i].replaced ? REPLACED : PASSED;
    return found;
}

static const void *by_address(const char *symbol, const void *real)
{
    ASSERT(real != NULL && real_addresses != NULL);
    const void *other = NULL;
    for (unsigned i = 0; i < entries_count; i++) {
        if (real_addresses[i] != real)
            continue;
        if (is_form_of(table_names[i], symbol))
            return entries[i].address;
        other = entries[i].address;
    }
    return other;
}

struct query {
    bool with_status; /* the second form of cuGetProcAddress */
    const char *symbol;
    int version;
    cuuint64_t flags;
    CUdriverProcAddressQueryResult *status;
};

/* What cuda.h says about a name that a driver lacks: the second form succeeds and says so in its status. */
static CUresult answer_absent(const struct query *q, void **function)
{
    *function = NULL;
    if (q->status != NULL)
        *q->status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return q->with_status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* Without a driver every name still leads to the facade, so that the program reaches cuInit, which reports that there
 * is no device. */
static CUresult without_driver(const struct query *q, void **function)
{
    if (q->symbol == NULL || function == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const struct entry *entry = by_name(q->symbol, q->version, q->flags, false);
    if (entry == NULL)
        return answer_absent(q, function);
    *function = (void *)entry->address;
    if (q->status != NULL)
        *q->status = CU_GET_PROC_ADDRESS_SUCCESS;
    return CUDA_SUCCESS;
}

static CUresult query_driver(const struct query *q, int version, void **function,
                             CUdriverProcAddressQueryResult *status)
{
    return q->with_status ? REAL(cuGetProcAddress_v2)(q->symbol, function, version, q->flags, status)
                          : REAL(cuGetProcAddress)(q->symbol, function, version, q->flags);
}

/* Answers as this driver does for a name that it lacks. Drivers differ: CUDA's runtime takes some answers as an error
 * that it then reports from later calls too. */
static CUresult withhold_function(const struct query *q, void **function)
{
    struct query absent = *q;
    absent.symbol = "cuNoDriverHasThisName";
    CUresult result = query_driver(&absent, q->version, function, q->status);
    return *function == NULL ? result : answer_absent(q, function);
}

/* Whether the driver gives another function to programs of the table's version. */
static bool is_newer(const struct query *q, const void *function)
{
    void *older = NULL;
    return q->version > REVIEWED && (query_driver(q, REVIEWED, &older, NULL) != CUDA_SUCCESS || older != function);
}

static CUresult answer_query(const struct query *q, void **function)
{
    CUresult result = query_driver(q, q->version, function, q->status);
    if (result != CUDA_SUCCESS || q->symbol == NULL || function == NULL || *function == NULL)
        return result;
    pthread_once(&once, resolve_all);
    if (real_addresses == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const void *address = by_address(q->symbol, *function);
    enum known class = address == NULL ? classify_symbol(q->symbol) : REPLACED;
    if (class == PASSED)
        return result;
    if (address == NULL && class == REPLACED && !is_newer(q, *function)) {
        const struct entry *entry = by_name(q->symbol, q->version, q->flags, true);
        address = entry == NULL ? NULL : entry->address;
    }
    if (address == NULL)
        return withhold_function(q, function);
    *function = (void *)address;
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
    const struct query q = {false, symbol, version, flags, NULL};
    return facade_open() == NULL ? without_driver(&q, function) : answer_query(&q, function);
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    const struct query q = {true, symbol, version, flags, status};
    return facade_open() == NULL ? without_driver(&q, function) : answer_query(&q, function);
}
