/* The driver's stores of memory for graphs, and the calls by which they grow and shrink. */
#include "devices.h"
#include "gate.h"
#include "graphs.h"
#include "hold.h"
#include "hooks.h"
#include "launches.h"

enum { USED_CURRENT = 0, RESERVED_CURRENT = 2 };

/* Under the lock of the graphs. */
static uint64_t charged[LAMINA_MAX_DEVICES];
static unsigned trims;

void graph_memory_forget(void)
{
    for (int device = 0; device < LAMINA_MAX_DEVICES; device++)
        charged[device] = 0;
}

/* A driver that does not tell is taken to hold what was announced. */
static uint64_t attribute(int device, CUgraphMem_attribute which, uint64_t otherwise)
{
    cuuint64_t value = 0;
    CUresult result = REAL(cuDeviceGetGraphMemAttribute)(device_ordinal(device), which, &value);
    return result == CUDA_SUCCESS ? value : otherwise;
}

/* What is charged and announced becomes what the driver holds. It holds it already, so a limit cannot be kept here. */
static void follow(int device, uint64_t announced)
{
    uint64_t counted = charged[device] + announced, real = attribute(device, RESERVED_CURRENT, counted);
    if (real > counted)
        hold_anyway(device, LAMINA_POOL, real - counted);
    else if (real < counted)
        give_back(device, LAMINA_POOL, counted - real);
    charged[device] = real;
}

static void trim(int device)
{
    REAL(cuDeviceGraphMemTrim)(device_ordinal(device));
    trims++;
    follow(device, 0);
}

void graphs_trim(void)
{
    if (!graphs_any() || !graphs_try_lock())
        return;
    for (int device = 0; device < LAMINA_MAX_DEVICES; device++)
        if (charged[device] > 0)
            trim(device);
    graphs_unlock();
}

void graphs_refresh(int device)
{
    if (!graphs_any())
        return;
    graphs_lock();
    trims++;
    follow(device, 0);
    graphs_unlock();
}

/* A graph that still runs keeps its memory from the store; the next in its stream could have it. */
static void wait_and_trim(int device, CUstream stream, CUresult (*wait)(CUstream))
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED; /* or waiting would spoil other threads' captures */
    REAL(cuThreadExchangeStreamCaptureMode)(&mode);
    wait(stream);
    REAL(cuThreadExchangeStreamCaptureMode)(&mode);
    trim(device);
}

/* What the store lacks for the graph, at most. */
static uint64_t lacking(const struct graph_record *record, int device)
{
    uint64_t most = record->need[device].most, reserved = attribute(device, RESERVED_CURRENT, charged[device]);
    uint64_t used = attribute(device, USED_CURRENT, reserved);
    uint64_t spare = reserved > used ? reserved - used : 0;
    return most > spare ? most - spare : 0;
}

CUresult graphs_announce(struct graph_record *record, CUstream stream, CUresult (*wait)(CUstream),
                         uint64_t announced[LAMINA_MAX_DEVICES])
{
    CUresult result = CUDA_SUCCESS;
    for (int device = 0; device < LAMINA_MAX_DEVICES; device++)
        announced[device] = 0;
    for (int device = 0; device < LAMINA_MAX_DEVICES && result == CUDA_SUCCESS; device++) {
        if (record->need[device].most == 0)
            continue;
        uint64_t lacks = lacking(record, device);
        if (hold_quietly(device, LAMINA_POOL, lacks) != CUDA_SUCCESS) {
            wait_and_trim(device, stream, wait);
            lacks = lacking(record, device);
            result = hold(device, LAMINA_POOL, lacks);
        }
        announced[device] = result == CUDA_SUCCESS ? lacks : 0;
    }
    for (int device = 0; device < LAMINA_MAX_DEVICES && result != CUDA_SUCCESS; device++)
        give_back(device, LAMINA_POOL, announced[device]);
    return result;
}

void graphs_settle(struct graph_record *record, CUstream stream, CUresult result,
                   const uint64_t announced[LAMINA_MAX_DEVICES])
{
    for (int device = 0; device < LAMINA_MAX_DEVICES; device++)
        if (record->need[device].most > 0)
            follow(device, announced[device]);
    record->mapped = result == CUDA_SUCCESS;
    record->stream = stream;
    record->trims = trims;
}

/* A launch or an upload. The driver finds memory at the first one into a stream; later ones need no more. */
struct run {
    CUresult (*run)(CUgraphExec exec, CUstream stream);
    CUresult (*wait)(CUstream stream);
    __typeof__(cuStreamIsCapturing) *is_capturing;
};

/* Into a capture goes the graph itself, and nothing runs. */
static bool captured(const struct run *run, CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return run->is_capturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static CUresult start(const struct run *run, CUgraphExec exec, CUstream stream)
{
    uint64_t announced[LAMINA_MAX_DEVICES];
    if (!graphs_any())
        return run->run(exec, stream);
    graphs_lock();
    struct graph_record *record = graphs_of_exec(exec);
    bool mapped = record != NULL && record->mapped && record->stream == stream && record->trims == trims;
    if (record == NULL || mapped || captured(run, stream)) {
        graphs_unlock();
        return run->run(exec, stream);
    }
    CUresult result = graphs_announce(record, stream, run->wait, announced);
    if (result == CUDA_SUCCESS) {
        result = run->run(exec, stream);
        graphs_settle(record, stream, result, announced);
    }
    graphs_unlock();
    return result;
}

static CUresult launch(const struct run *run, CUgraphExec exec, CUstream stream, CUstream through)
{
    bool asks = !gate_passes(through);
    if (asks)
        gate_enter(through);
    CUresult result = start(run, exec, stream);
    if (asks)
        gate_leave(through);
    return result;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    const struct run run = {REAL(cuGraphLaunch), REAL(cuStreamSynchronize), REAL(cuStreamIsCapturing)};
    return launch(&run, exec, stream, stream);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
    const struct run run = {REAL(cuGraphLaunch_ptsz), REAL(cuStreamSynchronize_ptsz), REAL(cuStreamIsCapturing_ptsz)};
    return launch(&run, exec, stream, stream == NULL ? CU_STREAM_PER_THREAD : stream);
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    const struct run run = {REAL(cuGraphUpload), REAL(cuStreamSynchronize), REAL(cuStreamIsCapturing)};
    return start(&run, exec, stream);
}

CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
    const struct run run = {REAL(cuGraphUpload_ptsz), REAL(cuStreamSynchronize_ptsz), REAL(cuStreamIsCapturing_ptsz)};
    return start(&run, exec, stream);
}

CUresult cuDeviceGraphMemTrim(CUdevice ordinal)
{
    CUresult result = REAL(cuDeviceGraphMemTrim)(ordinal);
    int device = device_entry(ordinal);
    if (result == CUDA_SUCCESS && device >= 0)
        graphs_refresh(device);
    return result;
}
