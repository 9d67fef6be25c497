"""`make gpu-test`: what a GPU and its driver do under limits, and whether the simulated driver does the same.

It is part of the benchmarks and not of the product, because it compares the card with the lab's simulated driver, which
the product does not know. What users need to see that limits hold is `lamina verify`, and one part of this test.

rows         what is tried: rows of data, each with a probe and what its facts must keep
probes       the programs, which ask the driver through ctypes and print facts
sides        the card, and the simulated one: rows in processes of their own with a time limit
programs     starting a process, and ending it and its children when its time is over
verified     `lamina verify` as rows
networks     known networks as layers, from which PyTorch's modules and simgpu's kernels are made
comparison   the card's facts next to the bounds and the simulated driver's
page         all results as one page
"""
