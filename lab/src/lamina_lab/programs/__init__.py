"""Programs in lab containers, in place of those in their images.

nvidia-smi, gpu-load and python3 are in a directory of the container's PATH. Scripts of the seeds' images are in a root
directory, where the python3 wrapper looks for scripts that this machine does not have.
"""

from lamina_lab.programs.installation import install

__all__ = ["install"]
