/* Connects the units: registers what lower units call back in higher ones. */
#include "compute/launch_gate.h"
#include "compute/meters.h"
#include "compute/signals.h"
#include "cuda/context_table.h"
#include "cuda/driver_environment.h"
#include "cuda/fork.h"
#include "cuda/process.h"
#include "memory/blocks.h"
#include "memory/contexts.h"
#include "memory/driver_usage.h"
#include "memory/graph_memory.h"
#include "memory/hosting.h"
#include "memory/imports.h"
#include "memory/ordered_frees.h"
#include "memory/pools.h"
#include "memory/reserve.h"
#include "memory/small_blocks.h"
#include "memory/vmm.h"
#include "shared/facade.h"

/* Runs once per process, before any hook does its work. A forked child keeps what its parent registered. */
void facade_opened(const struct facade *facade)
{
    driver_environment_give(facade);

    on_fork(blocks_after_fork);
    on_fork(context_table_after_fork);
    on_fork(contexts_after_fork);
    on_fork(driver_usage_after_fork);
    on_fork(gate_after_fork);
    on_fork(meters_after_fork);
    on_fork(signals_after_fork);
    on_fork(graph_records_after_fork);
    on_fork(graph_memory_after_fork);
    on_fork(hosting_after_fork);
    on_fork(imports_after_fork);
    on_fork(ordered_frees_after_fork);
    on_fork(pools_after_fork);
    on_fork(small_blocks_after_fork);
    on_fork(vmm_after_fork);

    add_reclaimer(ordered_frees_collect);
    add_reclaimer(pools_refresh);
    add_reclaimer(graph_memory_trim);
    add_reclaimer(process_reclaim_dead);
    add_reclaimer(contexts_correct_guesses);

    on_unknown_context(contexts_adopt);
    on_context_end(gate_end_context);
    on_gate_enter(hosting_follow);
}
