/* Names of errors, also where there is no driver: programs print them just then, and trust the text. */
#include "hooks.h"

#include <stddef.h>

struct known {
    CUresult error;
    const char *name, *text;
};

/* What the facade itself answers without a driver. */
static const struct known *known(CUresult error)
{
    static const struct known all[] = {
        {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
        {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
        {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
        {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
        {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    };
    static const struct known none = {0, NULL, NULL};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].error == error)
            return &all[i];
    return &none;
}

/* As in CUDA, an error that nobody knows has no text. */
static CUresult answer(const char *words, const char **place)
{
    if (place == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *place = words;
    return words == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    return facade_open() == NULL ? answer(known(error)->name, name) : REAL(cuGetErrorName)(error, name);
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    return facade_open() == NULL ? answer(known(error)->text, text) : REAL(cuGetErrorString)(error, text);
}
