"""The weights of the policy, found by `python -m bench.packing.train`; docs/concepts/packing-policy.md says how."""

from lamina.placement.packing.waste import Weights

TRAINED = Weights(
    one_by_count=0.9018,
    one_by_demand=0.2153,
    one_of_several=-0.0549,
    one_of_choosy=0.221,
    fill_by_count=0.316,
    fill_by_demand=-0.1892,
    scarce_gpu=-0.8669,
    scarce_cpu=0.0771,
    short_of_cpu_low=0.5111,
    short_of_cpu_middle=0.7319,
    short_of_cpu_high=0.0245,
    short_of_cpu_all=0.1182,
    stranded_cpu=0.6933,
    idle_node=-0.0329,
    idle_gpus=-0.5709,
    remainder_few=0.5544,
    remainder_some=0.196,
    remainder_many=0.5917,
    step=0.0135,
)
