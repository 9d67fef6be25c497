#include "cuda/transfer.h"

#include "cuda/capture.h"
#include "cuda/context.h"

CUresult transfer_begin_sync(void)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    TRY(capture_check_absent(ctx));
    stream_wait_all(ctx);
    return CUDA_SUCCESS;
}

CUresult transfer_begin_async(CUstream handle, CUgraphNodeType node, bool *captured)
{
    CUstream stream;
    TRY(stream_resolve(handle, &stream));
    *captured = stream->capture != NULL;
    return *captured ? capture_add_node(stream, node) : CUDA_SUCCESS;
}
