/* cuGetProcAddress: the driver says which function it would give for name, version and flags; where that is one of
 * those that we replace, ours for the same form is given instead. */
#include "entries.h"
#include "hooks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const void **real_addresses; /* of the replaced entries, by number */

static void resolve_all(void)
{
    const void **addresses = calloc(entries_count, sizeof *addresses);
    for (unsigned i = 0; addresses != NULL && i < entries_count; i++)
        if (entries[i].replaced)
            addresses[i] = facade_real(i);
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
        const char *name = facade_names[i];
        if (!is_form_of(name, symbol) || entry->since > version || (replaced_only && !entry->replaced))
            continue;
        if (per_thread(name) && !wants_per_thread)
            continue;
        if (best == NULL || entry->since > best->since ||
            (entry->since == best->since && per_thread(name) && !per_thread(facade_names[best - entries])))
            best = entry;
    }
    return best;
}

static void *ours(const char *symbol, void *real, int version, cuuint64_t flags)
{
    pthread_once(&once, resolve_all);
    if (real_addresses == NULL)
        return NULL;
    for (unsigned i = 0; i < entries_count; i++)
        if (real_addresses[i] == real && is_form_of(facade_names[i], symbol))
            return (void *)entries[i].address;
    const struct entry *entry = by_name(symbol, version, flags, true);
    return entry == NULL ? real : (void *)entry->address;
}

/* Without a driver every name still leads to us, so that the program gets to cuInit and hears that there is no
 * device. */
static CUresult without_driver(const char *symbol, void **function, int version, cuuint64_t flags,
                               CUdriverProcAddressQueryResult *status)
{
    const struct entry *entry = symbol == NULL ? NULL : by_name(symbol, version, flags, false);
    if (function == NULL || entry == NULL)
        return symbol == NULL || function == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
    *function = (void *)entry->address;
    if (status != NULL)
        *status = CU_GET_PROC_ADDRESS_SUCCESS;
    return CUDA_SUCCESS;
}

static CUresult replaced(CUresult result, const char *symbol, void **function, int version, cuuint64_t flags)
{
    if (result != CUDA_SUCCESS || function == NULL || *function == NULL)
        return result;
    *function = ours(symbol, *function, version, flags);
    return *function == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
    if (facade_open() == NULL)
        return without_driver(symbol, function, version, flags, NULL);
    return replaced(REAL(cuGetProcAddress)(symbol, function, version, flags), symbol, function, version, flags);
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    if (facade_open() == NULL)
        return without_driver(symbol, function, version, flags, status);
    return replaced(REAL(cuGetProcAddress_v2)(symbol, function, version, flags, status), symbol, function, version,
                    flags);
}
