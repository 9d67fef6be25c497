#include "cuda/stream.h"

#include "core/timeline.h"
#include "cuda/callback.h"
#include "cuda/driver.h"

#include <stdatomic.h>
#include <stdlib.h>

bool stream_is_default(CUstream handle)
{
    return handle == NULL || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

CUresult stream_resolve(CUstream handle, CUstream *stream)
{
    CUcontext ctx;
    TRY(context_require(&ctx));
    *stream = stream_is_default(handle) ? &ctx->legacy : handle;
    return (*stream)->ctx != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void stream_wait(CUstream stream)
{
    timeline_wait(&driver.m, stream->ctx->dev->gpu, driver.slot, atomic_load(&stream->last));
    callback_wait(stream);
}

void stream_destroy_all(CUcontext ctx)
{
    while (ctx->streams != NULL) {
        CUstream stream = ctx->streams;
        ctx->streams = stream->next;
        stream->ctx = NULL;
        free(stream);
    }
}

void stream_wait_all(CUcontext ctx)
{
    timeline_wait(&driver.m, ctx->dev->gpu, driver.slot, timeline_end(&driver.m, ctx->dev->gpu, driver.slot));
    callback_wait_all();
}
