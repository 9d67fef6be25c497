"""One target under libFuzzer: `python -m tests.fuzzing.one TARGET`, then what libFuzzer takes, such as a file.

ClusterFuzzLite calls it by a copy that is named `fuzz_TARGET`, which takes no TARGET.
"""

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["lamina"]):
    from tests.fuzzing.targets import TARGETS


def main() -> None:
    program = Path(sys.argv[0]).stem
    target = program.removeprefix("fuzz_") if program.startswith("fuzz_") else sys.argv.pop(1)
    atheris.Setup(sys.argv, TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
