/* cuDeviceGetAttribute. Values that differ between GPU models come from the machine file or the compute capability; the
 * others are those of an H100 with driver 580.159, see docs/measurements.md, which are the same on every GPU since
 * Volta as far as NVIDIA documents them. */
#include "core/lane.h"
#include "core/try.h"
#include "cuda/driver.h"

#include <stdatomic.h>

/* CUDA's numbers of the attributes that differ between GPU models. */
enum {
    CLOCK_RATE = 13,
    MULTIPROCESSOR_COUNT = 16,
    COMPUTE_MODE = 20,
    ECC_ENABLED = 32,
    PCI_BUS_ID = 33,
    PCI_DEVICE_ID = 34,
    MEMORY_CLOCK_RATE = 36,
    GLOBAL_MEMORY_BUS_WIDTH = 37,
    L2_CACHE_SIZE = 38,
    MAX_THREADS_PER_MULTIPROCESSOR = 39,
    PCI_DOMAIN_ID = 50,
    COMPUTE_CAPABILITY_MAJOR = 75,
    COMPUTE_CAPABILITY_MINOR = 76,
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    MULTI_GPU_BOARD_GROUP_ID = 85,
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    GENERIC_COMPRESSION = 107,
    MAX_PERSISTING_L2_CACHE_SIZE = 108,
    MAX_ACCESS_POLICY_WINDOW_SIZE = 109,
    MEMPOOL_HANDLE_TYPES = 119,
    CLUSTER_LAUNCH = 120,
    MEM_SYNC_DOMAINS = 126,
    TENSOR_MAP_ACCESS = 127,
    HANDLE_TYPE_FABRIC = 128,
    HOST_NUMA_ID = 134,
    GPU_PCI_DEVICE_ID = 139,
    GPU_PCI_SUBSYSTEM_ID = 140,
    HIGHEST_ATTRIBUTE = 161
};

/* The others, by their numbers. */
static const struct {
    int attribute, value;
} constants[] = {
    {1, 1024},   {2, 1024},     {3, 1024},        {4, 64},     {5, 0x7FFFFFFF}, {6, 65535},  {7, 65535},  {8, 49152},
    {9, 65536},  {10, 32},      {11, 0x7FFFFFFF}, {12, 65536}, {14, 512},       {15, 1},     {17, 0},     {18, 0},
    {19, 1},     {21, 131072},  {22, 131072},     {23, 65536}, {24, 16384},     {25, 16384}, {26, 16384}, {27, 32768},
    {28, 32768}, {29, 2048},    {30, 512},        {31, 1},     {35, 0},         {40, 3},     {41, 1},     {42, 32768},
    {43, 2048},  {44, 1},       {45, 32768},      {46, 32768}, {47, 8192},      {48, 8192},  {49, 32768}, {51, 32},
    {52, 32768}, {53, 32768},   {54, 2046},       {55, 32768}, {56, 131072},    {57, 65536}, {58, 16384}, {59, 16384},
    {60, 16384}, {61, 32768},   {62, 2048},       {63, 32768}, {64, 32768},     {65, 2048},  {66, 32768}, {67, 32768},
    {68, 2046},  {69, 1 << 28}, {70, 131072},     {71, 65000}, {72, 2097120},   {73, 32768}, {74, 32768}, {77, 32768},
    {78, 1},     {79, 1},       {80, 1},          {82, 65536}, {83, 1},         {84, 0},     {86, 0},     {87, 2},
    {88, 0},     {89, 1},       {90, 1},          {91, 1},     {92, 0},         {93, 0},     {94, 0},     {95, 1},
    {96, 1},     {98, 0},       {99, 1},          {100, 0},    {101, 0},        {102, 1},    {103, 1},    {104, 0},
    {105, 0},    {106, 32},     {110, 1},         {111, 1024}, {112, 1},        {113, 1},    {114, 1},    {115, 1},
    {116, 1},    {117, 1},      {118, 100},       {121, 1},    {122, 1},        {123, 1},    {124, 1},    {125, 1},
    {129, 1},    {130, 0},      {131, -1},        {132, 0},    {133, 0},        {141, 1},    {142, 1},    {144, 1},
    {145, 1},
};

/* False for what does not depend on the compute capability. */
static bool read_by_capability(const struct simgpu_gpu *gpu, int attribute, int *value)
{
    enum { FILE_DESCRIPTORS = 1, FABRIC = 8 };
    const bool ampere = gpu->compute_major >= 8, hopper = gpu->compute_major >= 9;
    switch (attribute) {
    case GENERIC_COMPRESSION:
        *value = ampere;
        return true;
    case MAX_PERSISTING_L2_CACHE_SIZE:
        *value = ampere ? (int)(gpu->l2_bytes / 4 * 3) : 0;
        if (hopper)
            *value = (int)(gpu->l2_bytes / 8 * 5);
        return true;
    case MAX_ACCESS_POLICY_WINDOW_SIZE:
        *value = ampere ? 1 << 27 : 0;
        return true;
    case MEMPOOL_HANDLE_TYPES:
        *value = FILE_DESCRIPTORS | (hopper ? FABRIC : 0);
        return true;
    case MEM_SYNC_DOMAINS:
        *value = hopper ? 4 : 1;
        return true;
    case CLUSTER_LAUNCH:
    case TENSOR_MAP_ACCESS:
    case HANDLE_TYPE_FABRIC:
        *value = hopper;
        return true;
    default:
        return false;
    }
}

/* False for what is the same on all GPUs. */
static bool read_from_record(const struct simgpu_gpu *gpu, int attribute, int *value)
{
    switch (attribute) {
    case CLOCK_RATE:
        *value = (int)gpu->sm_clock_mhz * 1000;
        return true;
    case COMPUTE_MODE:
        *value = (int)atomic_load(&gpu->compute_mode);
        return true;
    case ECC_ENABLED:
        *value = gpu->ecc == 1;
        return true;
    case PCI_BUS_ID:
        *value = (int)gpu->pci_bus;
        return true;
    case PCI_DEVICE_ID:
        *value = (int)gpu->pci_slot;
        return true;
    case MEMORY_CLOCK_RATE:
        *value = (int)gpu->memory_clock_mhz * 1000;
        return true;
    case GLOBAL_MEMORY_BUS_WIDTH:
        *value = (int)gpu->bus_width;
        return true;
    case L2_CACHE_SIZE:
        *value = (int)gpu->l2_bytes;
        return true;
    case MAX_THREADS_PER_MULTIPROCESSOR:
        *value = (int)gpu->threads_per_sm;
        return true;
    case PCI_DOMAIN_ID:
        *value = (int)gpu->pci_domain;
        return true;
    case COMPUTE_CAPABILITY_MAJOR:
        *value = (int)gpu->compute_major;
        return true;
    case COMPUTE_CAPABILITY_MINOR:
        *value = (int)gpu->compute_minor;
        return true;
    case MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        *value = (int)gpu->shared_per_sm;
        return true;
    case MULTI_GPU_BOARD_GROUP_ID:
        *value = (int)gpu->index;
        return true;
    case MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = (int)gpu->shared_per_sm - 1024;
        return true;
    case GPU_PCI_DEVICE_ID:
        *value = (int)gpu->pci_device;
        return true;
    case GPU_PCI_SUBSYSTEM_ID:
        *value = (int)gpu->pci_subsystem;
        return true;
    case HOST_NUMA_ID:
        *value = gpu->numa;
        return true;
    default:
        return read_by_capability(gpu, attribute, value);
    }
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice ordinal)
{
    struct device *dev;
    TRY(device_find(ordinal, &dev));
    if (value == NULL || attribute < 1 || attribute > HIGHEST_ATTRIBUTE)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == MULTIPROCESSOR_COUNT) {
        *value = (int)lane_multiprocessors(&driver.m, dev->gpu, driver.slot);
        return CUDA_SUCCESS;
    }
    if (read_from_record(device_record(dev), attribute, value))
        return CUDA_SUCCESS;
    *value = 0;
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++)
        if (constants[i].attribute == attribute)
            *value = constants[i].value;
    return CUDA_SUCCESS;
}
