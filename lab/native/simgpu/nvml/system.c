/* What NVML says about the system: versions, and names of processes. */
#include "nvml/library.h"

#include <stdio.h>

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    TRY(library_check_ready());
    return library_copy_text(version, length, library.m.head->driver);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    TRY(library_check_ready());
    return library_copy_text(version, length, library.m.head->nvml);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    if (version == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    TRY(library_check_ready());
    *version = (int)library.m.head->cuda_version;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return nvmlSystemGetCudaDriverVersion(version);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    char path[32], text[4096];
    TRY(library_check_ready());
    if (name == NULL || length == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return NVML_ERROR_NOT_FOUND;
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[bytes] = '\0'; /* the first word of the command */
    if (bytes == 0)
        return NVML_ERROR_NOT_FOUND;
    snprintf(name, length, "%s", text);
    return NVML_SUCCESS;
}
