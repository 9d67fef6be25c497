/* Entry points by name and version, as cuGetProcAddress finds them, and the other names under which the same code is
 * exported: for per-thread default streams (_ptds, _ptsz), and from before a function had versions. With one queue per
 * process the per-thread variants do the same. They are still separate entry points, so that a library in front of the
 * driver can distinguish them. */
#include "cuda/driver.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#define JUMP "jmp "
#define THROUGH "@PLT"
#elif defined(__aarch64__)
#define JUMP "b "
#define THROUGH ""
#endif

#define TWIN(name, target)                                                                                             \
    __asm__(".text\n.globl " #name "\n.type " #name ", %function\n" #name ":\n" JUMP #target THROUGH "\n.size " #name  \
            ", . - " #name "\n");

#define ENTRY(base, version, symbol)
#define ENTRY_PER_THREAD(base, version, symbol, suffix)                                                                \
    __typeof__(symbol) symbol##suffix;                                                                                 \
    TWIN(symbol##suffix, symbol)
#define OLDER(name, symbol) TWIN(name, symbol)
#include "cuda/entry_points.def"
#undef ENTRY
#undef ENTRY_PER_THREAD
#undef OLDER

struct entry {
    const char *base;
    int version;
    void (*function)(void);
    void (*per_thread)(void);
};

static const struct entry entries[] = {
#define ENTRY(base, version, symbol) {#base, version, (void (*)(void))symbol, NULL},
#define ENTRY_PER_THREAD(base, version, symbol, suffix)                                                                \
    {#base, version, (void (*)(void))symbol, (void (*)(void))symbol##suffix},
#define OLDER(name, symbol)
#include "cuda/entry_points.def"
};

#define PER_THREAD_SINCE 7000 /* the first version that has per-thread default streams */

/* `absent` is the result for a name or version that is not there. With an error, the place of the function stays as it
 * was, as in driver 580, which refuses versions beyond its own. */
static CUresult find(const char *name, void **out, int version, cuuint64_t flags,
                     CUdriverProcAddressQueryResult *status, CUresult absent)
{
    const struct entry *best = NULL;
    bool known = false, asks_per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    int newest = 0;
    if (name == NULL || out == NULL || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    cuDriverGetVersion(&newest);
    if (newest > 0 && version > newest)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        const struct entry *e = &entries[i];
        if (strcmp(e->base, name) != 0 || (newest > 0 && e->version > newest))
            continue;
        known = true;
        if (version < PER_THREAD_SINCE && asks_per_thread && e->per_thread != NULL)
            continue;
        if (e->version <= version && (best == NULL || e->version > best->version))
            best = e;
    }
    bool per_thread = asks_per_thread && best != NULL && best->per_thread != NULL;
    if (best != NULL)
        *out = (void *)(per_thread ? best->per_thread : best->function);
    else if (absent == CUDA_SUCCESS)
        *out = NULL;
    if (status != NULL && best != NULL)
        *status = CU_GET_PROC_ADDRESS_SUCCESS;
    else if (status != NULL)
        *status = known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return best != NULL ? CUDA_SUCCESS : absent;
}

/* The later form reports a missing name in its status; the earlier one has only the result. */
CUresult cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    return find(name, out, version, flags, status, CUDA_SUCCESS);
}

CUresult cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags)
{
    return find(name, out, version, flags, NULL, CUDA_ERROR_NOT_FOUND);
}

/* Private interfaces between NVIDIA's own libraries; there are none here. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    (void)id;
    if (table != NULL)
        *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
