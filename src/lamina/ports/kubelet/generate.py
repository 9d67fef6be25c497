"""Generate the stubs of kubelet's protocols: `python -m lamina.ports.kubelet.generate [FOLDER]`.

The compiler is given the source root as its include folder, so the generated files import each other by their full
package names and need no changes. grpcio-tools is only needed for this, not at run time.
"""

import sys
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

HERE = Path(__file__).parent
SOURCE_ROOT = HERE.parents[2]
PROTOCOLS = ("deviceplugin", "drahealth", "draplugin", "pluginregistration", "podresources")


def generate(into: Path = SOURCE_ROOT) -> None:
    """Write the stubs below `into`, in the folders of this package. Raises RuntimeError when the compiler fails."""
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    for protocol in PROTOCOLS:
        arguments = [
            "protoc",
            f"-I{SOURCE_ROOT}",
            f"-I{well_known}",
            f"--python_out={into}",
            f"--pyi_out={into}",
            f"--grpc_python_out={into}",
            str(HERE / f"{protocol}.proto"),
        ]
        if protoc.main(arguments) != 0:
            raise RuntimeError(f"protoc could not compile {protocol}.proto")


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE_ROOT)
