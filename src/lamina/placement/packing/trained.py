"""The weights of the policy, as `python -m bench.packing.train` found them. docs/placement.md tells how."""

from lamina.placement.packing.waste import Weights

TRAINED = Weights(
    one_by_count=0.5,
    one_by_demand=0.2,
    fill_by_count=0.3,
    fill_by_demand=0.1,
    scarce_gpu=-0.3,
    scarce_cpu=-0.1,
    short_of_cpu_low=0.1,
    short_of_cpu_middle=0.1,
    short_of_cpu_high=0.1,
    stranded_cpu=0.3,
    idle_node=-0.1,
    idle_gpus=-0.1,
    remainder_few=0.1,
    remainder_some=0.1,
    remainder_many=0.1,
    step=0.03,
)
