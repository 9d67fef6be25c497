/* What NVML says about the system: versions, and names of processes. */
#include "nvml/library.h"

#include <stdio.h>
#include <string.h>

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    TRY(library_check_ready());
    return library_copy_text(version, length, library.m.head->driver);
}

/* NVML's own version and CUDA's are there before NVML is initialized. */
static nvmlReturn_t read_header(struct simgpu_header *header)
{
    struct machine m = {0};
    const bool ready = library_check_ready() == NVML_SUCCESS;
    if (!ready && !machine_open(&m))
        return NVML_ERROR_DRIVER_NOT_LOADED;
    memcpy(header, ready ? library.m.head : m.head, sizeof *header);
    if (!ready)
        machine_close(&m);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    struct simgpu_header header;
    TRY(read_header(&header));
    return library_copy_text(version, length, header.nvml);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    struct simgpu_header header;
    if (version == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    TRY(read_header(&header));
    *version = (int)header.cuda_version;
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
