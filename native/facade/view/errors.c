/* Names of errors, also without a driver: programs print them just then, and do not check the result. */
#include "cuda/hooks.h"

#include <stddef.h>

struct known {
    CUresult error;
    const char *name, *text;
};

/* What the facade itself answers without a driver. */
static const struct known *find_error(CUresult error)
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

/* As in CUDA, an unknown error has no text. */
static CUresult give_text(const char *text, const char **result)
{
    if (result == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *result = text;
    return text == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    return facade_open() == NULL ? give_text(find_error(error)->name, name) : REAL(cuGetErrorName)(error, name);
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    return facade_open() == NULL ? give_text(find_error(error)->text, text) : REAL(cuGetErrorString)(error, text);
}
