/* The structures of cuda_min.h have the sizes and offsets of the driver's own (CUDA 13, 64-bit Linux). */
#include "cuda_prototypes.h"

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#define PLACE(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type "." #field)

SIZE(CUresult, 4);
SIZE(CUuuid, 16);
SIZE(CUipcMemHandle, 64);
SIZE(CUDA_ARRAY_DESCRIPTOR, 24);
SIZE(CUDA_ARRAY3D_DESCRIPTOR, 40);
SIZE(CUDA_ARRAY_MEMORY_REQUIREMENTS, 32);
SIZE(CUmemLocation, 8);
SIZE(CUmemAccessDesc, 12);
SIZE(CUmemAllocationProp, 32);
SIZE(CUmemPoolProps, 88);
PLACE(CUmemPoolProps, maxSize, 24);
SIZE(CUDA_MEMCPY2D, 128);
SIZE(CUDA_MEMCPY3D, 200);
SIZE(CUlaunchAttribute, 72);
SIZE(CUlaunchConfig, 56);
PLACE(CUlaunchConfig, hStream, 32);
SIZE(CUctxCreateParams, 24);
SIZE(CUexecAffinityParam, 8);
SIZE(CUDA_KERNEL_NODE_PARAMS, 72);
PLACE(CUDA_KERNEL_NODE_PARAMS, kern, 56);
SIZE(CUDA_MEMSET_NODE_PARAMS, 40);
SIZE(CUDA_MEM_ALLOC_NODE_PARAMS, 120);
SIZE(CUgraphNodeParams, 256);
SIZE(CUDA_GRAPH_INSTANTIATE_PARAMS, 32);
SIZE(CUgraphExecUpdateResultInfo, 24);
SIZE(CUDA_LAUNCH_PARAMS, 56);
SIZE(CUgraphEdgeData, 8);

int main(void)
{
    return 0;
}
