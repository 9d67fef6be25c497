/* Prints sizes and offsets of the shared structures, for comparison with their Python twin. */
#include "lamina_layout.h"

#include <stdio.h>

#define SIZE(type) printf(#type " %zu\n", sizeof(struct type))
#define FIELD(type, field)                                                                                             \
    printf(#type "." #field " %zu %zu\n", offsetof(struct type, field), sizeof(((struct type *)0)->field))

int main(void)
{
    SIZE(lamina_limit);
    FIELD(lamina_limit, uuid);
    FIELD(lamina_limit, memory_bytes);
    FIELD(lamina_limit, context_bytes);
    FIELD(lamina_limit, cores_percent);
    FIELD(lamina_limit, compute_policy);
    FIELD(lamina_limit, physical_bytes);
    FIELD(lamina_limit, most_percent);
    FIELD(lamina_limit, reserved1);
    FIELD(lamina_limit, request_bytes);
    FIELD(lamina_limit, reserved);
    SIZE(lamina_limits);
    FIELD(lamina_limits, magic);
    FIELD(lamina_limits, version);
    FIELD(lamina_limits, size);
    FIELD(lamina_limits, checksum);
    FIELD(lamina_limits, device_count);
    FIELD(lamina_limits, log_level);
    FIELD(lamina_limits, priority);
    FIELD(lamina_limits, flags);
    FIELD(lamina_limits, reserved);
    FIELD(lamina_limits, devices);
    SIZE(lamina_slot_compute);
    FIELD(lamina_slot_compute, busy_since);
    FIELD(lamina_slot_compute, asked_at);
    FIELD(lamina_slot_compute, waited_at);
    FIELD(lamina_slot_compute, busy_ns);
    FIELD(lamina_slot_compute, reserved);
    SIZE(lamina_slot_device);
    FIELD(lamina_slot_device, bytes);
    FIELD(lamina_slot_device, charged);
    FIELD(lamina_slot_device, spilled);
    FIELD(lamina_slot_device, compute);
    FIELD(lamina_slot_device, hosted);
    SIZE(lamina_slot);
    FIELD(lamina_slot, owner);
    FIELD(lamina_slot, image);
    FIELD(lamina_slot, stack);
    FIELD(lamina_slot, generation);
    FIELD(lamina_slot, measures);
    FIELD(lamina_slot, name);
    FIELD(lamina_slot, reserved2);
    SIZE(lamina_usage_compute);
    FIELD(lamina_usage_compute, due);
    FIELD(lamina_usage_compute, refund_ns);
    FIELD(lamina_usage_compute, deferred_ns);
    FIELD(lamina_usage_compute, deferred_at);
    FIELD(lamina_usage_compute, used_at);
    FIELD(lamina_usage_compute, launch_ns);
    FIELD(lamina_usage_compute, occupied_ns);
    FIELD(lamina_usage_compute, pause_ns);
    FIELD(lamina_usage_compute, turns_taken);
    FIELD(lamina_usage_compute, turn_until);
    FIELD(lamina_usage_compute, busy_ns);
    FIELD(lamina_usage_compute, waited_ns);
    FIELD(lamina_usage_compute, reserved);
    FIELD(lamina_usage_compute, bins);
    SIZE(lamina_usage_device);
    FIELD(lamina_usage_device, uuid);
    FIELD(lamina_usage_device, context_bytes);
    FIELD(lamina_usage_device, refusals);
    FIELD(lamina_usage_device, total);
    FIELD(lamina_usage_device, peak);
    FIELD(lamina_usage_device, measuring);
    FIELD(lamina_usage_device, reserved);
    FIELD(lamina_usage_device, compute);
    SIZE(lamina_share);
    FIELD(lamina_share, holder);
    FIELD(lamina_share, key);
    FIELD(lamina_share, bytes);
    FIELD(lamina_share, device);
    FIELD(lamina_share, reserved);
    SIZE(lamina_usage);
    FIELD(lamina_usage, magic);
    FIELD(lamina_usage, version);
    FIELD(lamina_usage, device_count);
    FIELD(lamina_usage, size);
    FIELD(lamina_usage, slot_count);
    FIELD(lamina_usage, slot_stride);
    FIELD(lamina_usage, generation);
    FIELD(lamina_usage, slots_used);
    FIELD(lamina_usage, sweep);
    FIELD(lamina_usage, shares_used);
    FIELD(lamina_usage, reserved);
    FIELD(lamina_usage, figure_requests);
    FIELD(lamina_usage, devices);
    SIZE(lamina_decision);
    FIELD(lamina_decision, closed);
    FIELD(lamina_decision, watched);
    FIELD(lamina_decision, attention);
    FIELD(lamina_decision, rate_ppm);
    FIELD(lamina_decision, refund_ns);
    FIELD(lamina_decision, memory_bytes);
    FIELD(lamina_decision, cores_percent);
    FIELD(lamina_decision, blocked_ns);
    SIZE(lamina_figures);
    FIELD(lamina_figures, slots);
    SIZE(lamina_lending);
    FIELD(lamina_lending, request_bytes);
    FIELD(lamina_lending, allowed_bytes);
    FIELD(lamina_lending, host_bytes);
    FIELD(lamina_lending, neighbors_borrow);
    FIELD(lamina_lending, window);
    FIELD(lamina_lending, turns);
    FIELD(lamina_lending, reserved);
    SIZE(lamina_heeded);
    FIELD(lamina_heeded, signals);
    SIZE(lamina_signal);
    FIELD(lamina_signal, magic);
    FIELD(lamina_signal, version);
    FIELD(lamina_signal, device_count);
    FIELD(lamina_signal, reserved);
    FIELD(lamina_signal, working);
    SIZE(lamina_arbiter);
    FIELD(lamina_arbiter, magic);
    FIELD(lamina_arbiter, version);
    FIELD(lamina_arbiter, device_count);
    FIELD(lamina_arbiter, heartbeat);
    FIELD(lamina_arbiter, figures_at);
    FIELD(lamina_arbiter, made_at);
    FIELD(lamina_arbiter, reserved);
    FIELD(lamina_arbiter, devices);
    FIELD(lamina_arbiter, figures);
    FIELD(lamina_arbiter, lendings);
    FIELD(lamina_arbiter, heeded);
    printf("usage_bytes %zu %zu\n", LAMINA_USAGE_BYTES(1), LAMINA_USAGE_BYTES(16));
    printf("constants %llu %llu %llu %llu %u %d %d %d %d %d %d %d %d %d %d %d\n",
           (unsigned long long)LAMINA_LIMITS_MAGIC, (unsigned long long)LAMINA_USAGE_MAGIC,
           (unsigned long long)LAMINA_ARBITER_MAGIC, (unsigned long long)LAMINA_SIGNAL_MAGIC, LAMINA_LAYOUT_VERSION,
           LAMINA_MAX_DEVICES, LAMINA_SLOTS, LAMINA_UUID_BYTES, LAMINA_BINS, LAMINA_KINDS, LAMINA_SHARES,
           LAMINA_FIGURES, LAMINA_HEEDED, LAMINA_PID_BITS, LAMINA_START_BITS, LAMINA_NS_BITS);
    return 0;
}
