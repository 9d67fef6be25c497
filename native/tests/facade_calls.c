#include "facade_calls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct calls calls;

extern void *linked_find(const char *wanted);

static void *in_library(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return library == NULL ? NULL : dlsym(library, name);
}

/* As the CUDA runtime does: by the name without suffixes, with the version and kind of streams that it needs. */
static void *by_address(const char *name, int version, int first_form)
{
    char symbol[64];
    void *function = NULL;
    int status, per_thread = strstr(name, "_ptsz") != NULL ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : 0;
    snprintf(symbol, sizeof symbol, "%s", name);
    char *suffix = strchr(symbol, '_');
    if (suffix != NULL)
        *suffix = 0;
    __typeof__(cuGetProcAddress) *v1 = in_library("cuGetProcAddress");
    __typeof__(cuGetProcAddress_v2) *v2 = in_library("cuGetProcAddress_v2");
    if (first_form)
        return v1(symbol, &function, version, (cuuint64_t)per_thread) == CUDA_SUCCESS ? function : NULL;
    return v2(symbol, &function, version, (cuuint64_t)per_thread, &status) == CUDA_SUCCESS ? function : NULL;
}

static void *in_plugin(const char *name)
{
    void *plugin = dlopen(getenv("FACADE_PLUGIN"), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    void *(*find)(const char *) = plugin == NULL ? NULL : (void *(*)(const char *))dlsym(plugin, "linked_find");
    return find == NULL ? NULL : find(name);
}

static void *find(const char *way, const char *name, int version)
{
    void *function = NULL;
    if (strcmp(way, "linked") == 0)
        function = linked_find(name);
    else if (strcmp(way, "dlopen") == 0)
        function = in_library(name);
    else if (strcmp(way, "next") == 0)
        function = dlsym(RTLD_NEXT, name);
    else if (strcmp(way, "procaddress") == 0)
        function = by_address(name, version, 0);
    else if (strcmp(way, "procaddress1") == 0)
        function = by_address(name, version, 1);
    else if (strcmp(way, "deepbind") == 0)
        function = in_plugin(name);
    if (function == NULL) {
        printf("%s is not found by way of %s\n", name, way);
        exit(3);
    }
    return function;
}

void calls_find(const char *way)
{
#define SET(name, version) *(void **)&calls.name = find(way, #name, version);
    CALLS(SET)
}

void need(CUresult result, const char *call, int line)
{
    if (result == CUDA_SUCCESS)
        return;
    printf("line %d: %s gave %d\n", line, call, result);
    exit(1);
}
