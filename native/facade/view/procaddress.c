/* cuGetProcAddress: the driver says which function it would give for name, version and flags. If the facade replaces
 * that function, its own function for the same form is returned instead.
 *
 * What was not reviewed does not exist. A name that is not in the table is not found, as dlsym does not find it either.
 * The same goes for a form that is newer than the table, of a function whose known forms are replaced. CUDA's own
 * libraries cope with both, because they also run on older drivers. New forms of functions that are only passed on are
 * the driver's.
 *
 * Example: the table has cuMemAlloc and cuMemAlloc_v2, which is of version 3020. A program asks for "cuMemAlloc" at
 * version 12000. The driver gives the address of its cuMemAlloc_v2. forms_find_real finds it among the real addresses,
 * and the program gets the facade's cuMemAlloc_v2. */
#include "cuda/hooks.h"
#include "view/entries.h"
#include "view/forms.h"

/* The form for a version, by our own table: for drivers whose addresses are not those of their exported names. */
static const struct entry *by_name(const char *symbol, int version, cuuint64_t flags, bool replaced_only)
{
    bool wants_per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    unsigned best = NO_ENTRY;
    for (unsigned i = forms_first(symbol); i != NO_ENTRY; i = forms_next(symbol, i)) {
        if (entries[i].since > version || (replaced_only && !entries[i].replaced))
            continue;
        if (forms_is_per_thread(i) && !wants_per_thread)
            continue;
        if (best == NO_ENTRY || entries[i].since > entries[best].since ||
            (entries[i].since == entries[best].since && forms_is_per_thread(i) && !forms_is_per_thread(best)))
            best = i;
    }
    return best == NO_ENTRY ? NULL : &entries[best];
}

/* What the table says about a name in all its forms. */
static enum known { UNKNOWN, PASSED, REPLACED } classify_symbol(const char *symbol)
{
    bool any;
    if (forms_include_replaced(symbol, &any))
        return REPLACED;
    return any || symbol[0] == 0 ? PASSED : UNKNOWN; /* an empty name is no function */
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
    const unsigned found = forms_find_real(q->symbol, *function);
    const void *address = found == NO_ENTRY ? NULL : entries[found].address;
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
