// A C++ program on the driver API, with NVIDIA's own header: pools, graphs and memory of other processes.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <map>
#include <string>
#include <unistd.h>

namespace
{

constexpr size_t step = 32 << 20;
constexpr char image[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry scale(.param .u64 values)\n{\n    ret;\n}\n";

void need(CUresult result, const char *call)
{
    if (result == CUDA_SUCCESS)
        return;
    const char *name = "?";
    cuGetErrorName(result, &name);
    std::fprintf(stderr, "%s: %s\n", call, name);
    std::exit(1);
}
#define NEED(call) need(call, #call)

CUstream stream;

CUmemPoolProps of_device()
{
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return properties;
}

CUresult take_linear()
{
    CUdeviceptr pointer;
    return cuMemAlloc(&pointer, step);
}

CUresult take_from_pool()
{
    static CUmemoryPool pool = nullptr;
    const CUmemPoolProps properties = of_device();
    if (pool == nullptr) {
        cuuint64_t all = UINT64_MAX;
        NEED(cuMemPoolCreate(&pool, &properties));
        NEED(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    }
    CUdeviceptr pointer;
    CUresult result = cuMemAllocFromPoolAsync(&pointer, step, pool, stream);
    return result == CUDA_SUCCESS ? cuStreamSynchronize(stream) : result;
}

// Memory that a graph allocates when it is launched, and that stays.
CUresult take_by_graph()
{
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    CUDA_MEM_ALLOC_NODE_PARAMS parameters = {};
    parameters.poolProps = of_device();
    parameters.bytesize = step;
    NEED(cuGraphCreate(&graph, 0));
    CUresult result = cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &parameters);
    if (result == CUDA_SUCCESS)
        result = cuGraphInstantiate(&exec, graph, 0);
    if (result == CUDA_SUCCESS)
        result = cuGraphLaunch(exec, stream);
    return result == CUDA_SUCCESS ? cuStreamSynchronize(stream) : result;
}

// Another process of the container, which opens what this one shares.
struct other {
    int to = -1, from = -1;

    void wait() const
    {
        char done;
        if (read(from, &done, 1) != 1)
            std::exit(1);
    }
} other;

// Memory that both processes have: it counts once.
CUresult take_shared()
{
    CUdeviceptr pointer;
    CUipcMemHandle handle;
    CUresult result = cuMemAlloc(&pointer, step);
    if (result != CUDA_SUCCESS)
        return result;
    NEED(cuIpcGetMemHandle(&handle, pointer));
    if (write(other.to, &handle, sizeof handle) != sizeof handle)
        return CUDA_ERROR_UNKNOWN;
    other.wait();
    return CUDA_SUCCESS;
}

void begin()
{
    CUdevice device;
    CUcontext context;
    NEED(cuInit(0));
    NEED(cuDeviceGet(&device, 0));
    NEED(cuDevicePrimaryCtxRetain(&context, device));
    NEED(cuCtxSetCurrent(context));
    NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

[[noreturn]] void open_all(int from, int to)
{
    CUipcMemHandle handle;
    CUdeviceptr pointer;
    begin();
    while (write(to, "", 1) == 1 && read(from, &handle, sizeof handle) == sizeof handle) {
        NEED(cuIpcOpenMemHandle(&pointer, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
        NEED(cuMemsetD8(pointer, 7, step));
    }
    std::exit(0);
}

void start_other()
{
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0)
        std::exit(1);
    if (fork() == 0) {
        close(to[1]);
        open_all(to[0], from[1]);
    }
    close(to[0]);
    other.to = to[1], other.from = from[0];
    other.wait();
}

void fill(CUresult (*take)())
{
    int count = 0;
    CUresult result;
    while ((result = take()) == CUDA_SUCCESS)
        count++;
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        need(result, "taking memory");
    std::printf("full %d %zu\n", count, step >> 20);
    std::fflush(stdout);
    std::getchar();
}

// Launches a graph of ten kernels until there were `before`, then `count`, and prints the ms of the latter.
void work(int before, int count)
{
    CUmodule module;
    CUfunction scale;
    CUdeviceptr values;
    CUgraph graph;
    CUgraphExec exec;
    NEED(cuModuleLoadData(&module, image));
    NEED(cuModuleGetFunction(&scale, module, "scale"));
    NEED(cuMemAlloc(&values, 4096));
    void *arguments[] = {&values};
    NEED(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (int i = 0; i < 10; i++)
        NEED(cuLaunchKernel(scale, 4, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr));
    NEED(cuStreamEndCapture(stream, &graph));
    NEED(cuGraphInstantiate(&exec, graph, 0));
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < before + count; i += 10) {
        if (i == before)
            begin = std::chrono::steady_clock::now();
        NEED(cuGraphLaunch(exec, stream));
        NEED(cuStreamSynchronize(stream));
    }
    auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
    std::printf("%lld\n", static_cast<long long>(ms.count()));
}

} // namespace

int main(int, char **arguments)
{
    const std::map<std::string, CUresult (*)()> ways = {
        {"linear", take_linear}, {"pool", take_from_pool}, {"graph", take_by_graph}, {"shared", take_shared}};
    const std::string what = arguments[2];
    if (what == "shared")
        start_other();
    begin();
    if (arguments[1] == std::string("fill"))
        fill(ways.at(what));
    else
        work(std::stoi(what), std::stoi(arguments[3]));
    return 0;
}
