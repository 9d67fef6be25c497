/* cuDeviceGetAttribute. Numbers that differ between cards come from the machine file; the others are those that
 * every card since Volta answers. */
#include "driver.h"

static const struct {
    int attribute, value;
} constants[] = {
    {1, 1024},          {2, 1024},   {3, 1024},  {4, 64},     {5, 0x7FFFFFFF}, {6, 65535},  {7, 65535},
    {8, 49152},         {9, 65536},  {10, 32},   {11, 0x7FFFFFFF}, {12, 65536}, {14, 512},  {15, 1},
    {17, 0},            {18, 0},     {19, 1},    {21, 131072},    {22, 131072}, {23, 65536},
    {24, 16384},        {25, 16384}, {26, 16384}, {27, 32768}, {28, 32768},    {29, 2048},  {30, 512},
    {31, 1},            {35, 0},     {40, 3},    {41, 1},     {42, 32768},     {43, 2048},  {51, 32},
    {69, 1 << 28},      {70, 131072}, {71, 65000}, {72, 2097120}, {73, 32768},  {74, 32768}, {77, 32768},
    {78, 1},            {79, 1},     {80, 1},    {82, 65536}, {83, 1},         {84, 0},     {86, 0},
    {87, 2},            {88, 0},     {89, 1},    {90, 1},     {91, 1},         {92, 1},     {93, 1},
    {94, 1},            {95, 1},     {96, 1},    {98, 0},     {99, 1},         {100, 0},    {101, 0},
    {102, 1},           {103, 0},    {104, 0},   {105, 0},    {106, 32},       {107, 0},    {110, 0},
    {111, 1024},        {112, 0},    {113, 0},   {114, 0},    {115, 1},        {116, 0},    {117, 0},
    {118, 0},           {119, 0},    {122, 1},   {123, 1},    {124, 0},        {125, 0},    {126, 1},
    {127, 0},           {128, 0},    {129, 1},   {130, 0},    {131, -1},       {132, 0},    {133, 0},
};

static bool of_card(const simgpu_gpu *gpu, int attribute, int *value) {
    switch (attribute) {
    case 13: *value = (int)gpu->sm_clock_mhz * 1000; return true;
    case 16: *value = (int)gpu->sm_count; return true;
    case 20: *value = (int)__atomic_load_n(&gpu->compute_mode, __ATOMIC_SEQ_CST); return true;
    case 32: *value = (int)gpu->ecc; return true;
    case 33: *value = (int)gpu->pci_bus; return true;
    case 34: *value = (int)gpu->pci_slot; return true;
    case 36: *value = (int)gpu->memory_clock_mhz * 1000; return true;
    case 37: *value = (int)gpu->bus_width; return true;
    case 38: *value = (int)gpu->l2_bytes; return true;
    case 39: *value = (int)gpu->threads_per_sm; return true;
    case 50: *value = (int)gpu->pci_domain; return true;
    case 75: *value = (int)gpu->compute_major; return true;
    case 76: *value = (int)gpu->compute_minor; return true;
    case 81: *value = (int)gpu->shared_per_sm; return true;
    case 85: *value = (int)gpu->index; return true;
    case 97: *value = (int)gpu->shared_per_sm - 1024; return true;
    case 108:
    case 109: *value = gpu->compute_major >= 8 ? (int)(gpu->l2_bytes / 4 * 3) : 0; return true;
    case 120: *value = gpu->compute_major >= 9; return true;
    case 134: *value = gpu->numa; return true;
    default: return false;
    }
}

SIM_API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice ordinal) {
    if (driver_ready() != CUDA_SUCCESS) return CUDA_ERROR_NOT_INITIALIZED;
    device *dev = driver_device(ordinal);
    if (dev == NULL) return CUDA_ERROR_INVALID_DEVICE;
    if (value == NULL || attribute < 1 || attribute > 161) return CUDA_ERROR_INVALID_VALUE;
    if (of_card(device_record(dev), attribute, value)) return CUDA_SUCCESS;
    *value = 0;
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++)
        if (constants[i].attribute == attribute) *value = constants[i].value;
    return CUDA_SUCCESS;
}
