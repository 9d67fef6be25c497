#include "cuda/image_file.h"

#include <stdio.h>
#include <stdlib.h>

static CUresult read_all(FILE *file, char **out)
{
    if (fseek(file, 0, SEEK_END) != 0)
        return CUDA_ERROR_FILE_NOT_FOUND;
    long bytes = ftell(file);
    char *image = bytes >= 0 ? malloc((size_t)bytes + 1) : NULL;
    if (image == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    rewind(file);
    if (fread(image, 1, (size_t)bytes, file) != (size_t)bytes) {
        free(image);
        return CUDA_ERROR_FILE_NOT_FOUND;
    }
    image[bytes] = '\0';
    *out = image;
    return CUDA_SUCCESS;
}

CUresult image_file_read(const char *path, char **out)
{
    if (path == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult result = read_all(file, out);
    fclose(file);
    return result;
}
