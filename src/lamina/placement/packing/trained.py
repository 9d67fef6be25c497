"""The weights of the policy, as `python -m bench.packing.train` found them. docs/placement.md tells how."""

from lamina.placement.packing.waste import Weights

TRAINED = Weights(
    one_by_count=0.7245,
    one_by_demand=0.1737,
    one_of_several=0,
    one_of_choosy=0,
    fill_by_count=0.3062,
    fill_by_demand=-0.0564,
    scarce_gpu=-0.502,
    scarce_cpu=-0.0243,
    short_of_cpu_low=0.2229,
    short_of_cpu_middle=0.6197,
    short_of_cpu_high=0.1404,
    short_of_cpu_all=0,
    stranded_cpu=0.5869,
    idle_node=0.0368,
    idle_gpus=-0.3689,
    remainder_few=0.4835,
    remainder_some=0.1415,
    remainder_many=0.551,
    step=0.0199,
)
