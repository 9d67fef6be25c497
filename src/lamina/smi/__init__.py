"""nvidia-smi over NVML alone: what it prints is what any program sees, be NVML the driver's, simulated or the facade.

The layout is that of the drivers 470 to 515. Little is imported, because people run it in loops.
"""
