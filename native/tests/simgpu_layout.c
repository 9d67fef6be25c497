/* Prints the machine file's layout, a line per fact, for a test that compares it with the Python twin. */
#include <stdio.h>

#include "simgpu_layout.h"

#define SIZE(type, name) printf("%s %zu\n", name, sizeof(type))
#define FIELD(type, name, field)                                                                                       \
    printf("%s.%s %zu %zu\n", name, #field, offsetof(type, field), sizeof(((type *)0)->field))

#define HEADER(f) FIELD(struct simgpu_header, "Header", f)
#define PROCESS(f) FIELD(struct simgpu_process, "Process", f)
#define MIG_PROFILE(f) FIELD(struct simgpu_mig_profile, "MigProfile", f)
#define GPU(f) FIELD(struct simgpu_gpu, "Gpu", f)
#define LOG_ENTRY(f) FIELD(struct simgpu_log_entry, "LogEntry", f)
#define CELL(f) FIELD(struct simgpu_cell, "Cell", f)

int main(void)
{
    printf("MAGIC %llu\nVERSION %u\nMAX_GPUS %u\nSLOTS %u\nMIG_UNITS %u\nMIG_PROFILES %u\nLOG %u\nHISTORY %u\n",
           (unsigned long long)SIMGPU_MAGIC, SIMGPU_VERSION, SIMGPU_MAX_GPUS, SIMGPU_SLOTS, SIMGPU_MIG_UNITS,
           SIMGPU_MIG_PROFILES, SIMGPU_LOG, SIMGPU_HISTORY);
    printf("HEADER_BYTES %u\nRECORD_BYTES %u\nGPU_STRIDE %zu\n", SIMGPU_HEADER_BYTES, SIMGPU_RECORD_BYTES,
           (size_t)SIMGPU_GPU_BYTES);
    SIZE(struct simgpu_header, "Header");
    HEADER(magic);
    HEADER(version);
    HEADER(gpu_count);
    HEADER(cuda_version);
    HEADER(context_us);
    HEADER(size);
    HEADER(kernel_ns);
    HEADER(host_mib);
    HEADER(processes);
    HEADER(gpus);
    HEADER(gpu_stride);
    HEADER(slots_used);
    HEADER(allocation_us);
    HEADER(swept_at);
    HEADER(driver);
    HEADER(nvml);
    HEADER(unit_count);
    HEADER(init_us);
    HEADER(unified);
    SIZE(struct simgpu_process, "Process");
    PROCESS(identity);
    PROCESS(image);
    PROCESS(since_ns);
    PROCESS(name);
    SIZE(struct simgpu_mig_profile, "MigProfile");
    MIG_PROFILE(name);
    MIG_PROFILE(id);
    MIG_PROFILE(memory_mib);
    MIG_PROFILE(sms);
    MIG_PROFILE(starts);
    MIG_PROFILE(index);
    MIG_PROFILE(slices);
    MIG_PROFILE(size);
    MIG_PROFILE(most);
    MIG_PROFILE(media);
    MIG_PROFILE(copy_engines);
    MIG_PROFILE(decoders);
    MIG_PROFILE(encoders);
    MIG_PROFILE(jpeg);
    MIG_PROFILE(ofa);
    SIZE(struct simgpu_gpu, "Gpu");
    GPU(uuid);
    GPU(name);
    GPU(bus_id);
    GPU(serial);
    GPU(model);
    GPU(index);
    GPU(memory_mib);
    GPU(context_mib);
    GPU(sm_count);
    GPU(compute_major);
    GPU(compute_minor);
    GPU(threads_per_sm);
    GPU(cuda_cores);
    GPU(architecture);
    GPU(brand);
    GPU(power_limit_mw);
    GPU(power_idle_mw);
    GPU(temperature);
    GPU(pci_device);
    GPU(pci_subsystem);
    GPU(pci_domain);
    GPU(pci_bus);
    GPU(pci_slot);
    GPU(pcie_generation);
    GPU(sm_clock_mhz);
    GPU(memory_clock_mhz);
    GPU(bus_width);
    GPU(l2_bytes);
    GPU(ecc);
    GPU(persistence);
    GPU(mig_capable);
    GPU(bar1_mib);
    GPU(shared_per_sm);
    GPU(numa);
    GPU(contexts_made);
    GPU(nvlinks);
    GPU(bridge);
    GPU(xid);
    GPU(lost);
    GPU(time_slice);
    GPU(ledger);
    GPU(turn);
    GPU(mig_mode);
    GPU(first_unit);
    GPU(mig_slices);
    GPU(mig_media);
    GPU(mig_profiles);
    GPU(parent);
    GPU(instance);
    GPU(compute_mode);
    GPU(default_slice_us);
    GPU(switch_us);
    GPU(profiles);
    SIZE(struct simgpu_log_entry, "LogEntry");
    LOG_ENTRY(start);
    LOG_ENTRY(done_after);
    LOG_ENTRY(turn);
    SIZE(struct simgpu_cell, "Cell");
    CELL(memory);
    CELL(work);
    CELL(ready_at);
    CELL(base);
    CELL(executed);
    CELL(contexts);
    CELL(launches);
    CELL(history);
    CELL(managed);
    CELL(touched_at);
    CELL(cgroup);
    CELL(mps);
    CELL(lane);
    CELL(promised);
    return 0;
}
