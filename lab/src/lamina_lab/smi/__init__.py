"""nvidia-smi on NVML alone: it prints what any program sees, whether NVML is the driver's, simulated, or the facade.

The layout is that of drivers 470 to 515. It imports little, because people run it in loops.
"""
