"""Whether limits hold on this very machine: `lamina verify`.

machine     which GPU and driver are looked at, and how a process is put under limits there, or under none
tenant      the program that is held: it takes memory, looks around and computes, and says what it got
memory      every kind of memory stops at the limit
views       CUDA, NVML and nvidia-smi tell the limit
compute     the share of the GPU's time against the share granted
overhead    what the facade adds to a call
escapes     ways around the facade
report      rows, as charts and as an HTML page
run         all of it, after the facts about the GPU and its driver
"""
