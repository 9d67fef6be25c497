// A Go program that opens the driver as NVIDIA's bindings for Go do: by dlopen and dlsym.
//
//	fill    takes blocks of 32 MiB until one is refused, says so and waits
//	shows   prints the MiB of the first GPU, by NVML
package main

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stddef.h>

struct nvml_memory { unsigned long long total, free, used; };

static void *library;

static int open_library(const char *name)
{
    return (library = dlopen(name, RTLD_LAZY | RTLD_GLOBAL)) != NULL;
}

#define FIND(name, ...) int (*name)(__VA_ARGS__) = (int (*)(__VA_ARGS__))dlsym(library, #name); \
    if (name == NULL) return -1

static int begin(void)
{
    FIND(cuInit, unsigned);
    FIND(cuDeviceGet, int *, int);
    FIND(cuDevicePrimaryCtxRetain, void **, int);
    FIND(cuCtxSetCurrent, void *);
    int device, code;
    void *context;
    if ((code = cuInit(0)) != 0 || (code = cuDeviceGet(&device, 0)) != 0 ||
        (code = cuDevicePrimaryCtxRetain(&context, device)) != 0)
        return code;
    return cuCtxSetCurrent(context);
}

static int take(size_t bytes)
{
    unsigned long long where;
    FIND(cuMemAlloc_v2, unsigned long long *, size_t);
    return cuMemAlloc_v2(&where, bytes);
}

static int total(unsigned long long *bytes)
{
    FIND(nvmlInit_v2, void);
    FIND(nvmlDeviceGetHandleByIndex_v2, unsigned, void **);
    FIND(nvmlDeviceGetMemoryInfo, void *, struct nvml_memory *);
    struct nvml_memory memory = {0};
    void *device;
    int code = nvmlInit_v2();
    if (code == 0 && (code = nvmlDeviceGetHandleByIndex_v2(0, &device)) == 0)
        code = nvmlDeviceGetMemoryInfo(device, &memory);
    *bytes = memory.total;
    return code;
}
*/
import "C"

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
)

const (
	mib         = 1 << 20
	stepMib     = 32
	outOfMemory = 2
)

func check(what string, code C.int) {
	if code != 0 {
		fmt.Println(what, "returned", code)
		os.Exit(1)
	}
}

func open(name string) {
	if C.open_library(C.CString(name)) == 0 {
		fmt.Println(name, "cannot be opened:", C.GoString(C.dlerror()))
		os.Exit(1)
	}
}

func fill() {
	open("libcuda.so.1")
	check("a context", C.begin())
	count, code := 0, C.int(0)
	for ; code == 0; count++ {
		code = C.take(stepMib * mib)
	}
	if code != outOfMemory {
		check("an allocation", code)
	}
	fmt.Println("full", count-1, stepMib)
	bufio.NewReader(os.Stdin).ReadString('\n')
}

func main() {
	runtime.LockOSThread() // a context is current in a thread
	if os.Args[1] == "fill" {
		fill()
		return
	}
	open("libnvidia-ml.so.1")
	var bytes C.ulonglong
	check("NVML", C.total(&bytes))
	fmt.Println(uint64(bytes) / mib)
}
