"""Programs that a lab container finds, in place of what its image would hold.

nvidia-smi, gpu-load and python3 lie in a folder of the container's PATH; scripts of the seeds' images lie under a
root folder, where the python3 in front of the real one looks for scripts that this machine does not have.
"""

from lamina.lab.programs.installing import install

__all__ = ["install"]
