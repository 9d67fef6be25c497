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

uint64_t stream_end(CUstream stream)
{
    CUcontext ctx = stream->ctx;
    uint64_t end = atomic_load(&stream->last), other = 0;
    if (stream != &ctx->legacy && !(stream->flags & CU_STREAM_NON_BLOCKING))
        other = atomic_load(&ctx->legacy.last);
    end = other > end ? other : end;
    for (CUstream s = ctx->streams; stream == &ctx->legacy && s != NULL; s = s->next) {
        other = s->flags & CU_STREAM_NON_BLOCKING ? 0 : atomic_load(&s->last);
        end = other > end ? other : end;
    }
    return end;
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
