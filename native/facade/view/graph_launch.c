/* Launching and uploading graphs: the one kind of call that takes both memory and GPU time. */
#include "compute/launch_gate.h"
#include "cuda/hooks.h"
#include "memory/graph_memory.h"
#include "shared/assertion.h"

/* A launch or an upload. The driver finds memory at the first one into a stream; later ones need no more. */
struct run {
    CUresult (*run)(CUgraphExec exec, CUstream stream);
    CUresult (*query)(CUstream stream);
    __typeof__(cuStreamIsCapturing) *is_capturing;
};

/* In a capture the graph becomes part of another one, and nothing runs. */
static bool is_captured(const struct run *run, CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return run->is_capturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* The lock is held over the driver's call, so that no other graph gets the memory that was found for this one. Says
 * whether memory for the graph lacks. */
static CUresult try_graph(const struct run *run, CUgraphExec exec, CUstream stream, bool last, bool *lacks)
{
    uint64_t reserved[LAMINA_MAX_DEVICES];
    ASSERT(run->run != NULL && run->query != NULL);
    *lacks = false;
    graph_records_lock();
    struct graph_record *record = graph_record_of_exec(exec);
    bool mapped = record != NULL && graph_memory_is_mapped(record, stream);
    if (record == NULL || mapped || is_captured(run, stream)) { /* it takes no memory now */
        graph_records_unlock();
        return run->run(exec, stream);
    }
    CUresult result = graph_memory_reserve(record, last, reserved);
    *lacks = result != CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) {
        result = run->run(exec, stream);
        graph_memory_settle(record, stream, result, reserved);
    }
    graph_records_unlock();
    return result;
}

static CUresult start_graph(const struct run *run, CUgraphExec exec, CUstream stream)
{
    bool lacks;
    if (!graph_records_any())
        return run->run(exec, stream);
    CUresult result = try_graph(run, exec, stream, false, &lacks);
    if (!lacks)
        return result;
    graph_memory_wait(stream, run->query);
    return try_graph(run, exec, stream, true, &lacks);
}

static CUresult launch_graph(const struct run *run, CUgraphExec exec, CUstream stream, CUstream through)
{
    bool enters = !gate_passes(through);
    if (enters)
        gate_enter(through);
    CUresult result = start_graph(run, exec, stream);
    if (enters)
        gate_leave(through);
    return result;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    const struct run run = {REAL(cuGraphLaunch), REAL(cuStreamQuery), REAL(cuStreamIsCapturing)};
    return launch_graph(&run, exec, stream, stream);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
    const struct run run = {REAL(cuGraphLaunch_ptsz), REAL(cuStreamQuery_ptsz), REAL(cuStreamIsCapturing_ptsz)};
    return launch_graph(&run, exec, stream, stream == NULL ? CU_STREAM_PER_THREAD : stream);
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    const struct run run = {REAL(cuGraphUpload), REAL(cuStreamQuery), REAL(cuStreamIsCapturing)};
    return start_graph(&run, exec, stream);
}

CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
    const struct run run = {REAL(cuGraphUpload_ptsz), REAL(cuStreamQuery_ptsz), REAL(cuStreamIsCapturing_ptsz)};
    return start_graph(&run, exec, stream);
}
