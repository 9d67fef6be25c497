"""Lists what the facade does with the functions of a header of NVIDIA that its lists do not have.

    python native/facade/review.py HEADER...

HEADER is a `cuda.h` (or another header of the driver) or an `nvml.h`. For every function without a class one line
says what programs get. The exit status is 0 when all functions have a class, 1 when some have none and 2 for a file
that is no such header.
"""

import re
import sys
from pathlib import Path

import generate


def plain(name: str) -> str:
    """The name that programs give to cuGetProcAddress: without its version and the suffix for streams."""
    return re.sub(r"(_v\d+)?(_pts[zd])?$", "", name)


def consequence(name: str, classes: dict[str, tuple[str, int]]) -> str:
    """What a program gets that looks for a function without a class."""
    forms = sorted(known for known in classes if plain(known) == plain(name))
    if name.startswith("nvml") or not forms:
        return "withheld: programs do not find it"
    if all(classes[form][0] == "pass" for form in forms):
        return "passed on by cuGetProcAddress, as the other forms are; dlsym does not find it"
    return f"withheld: programs that ask for this form do not find it; there is {', '.join(forms)}"


def review(header: Path) -> list[str]:
    """The lines about one header. Raises ValueError for a file that declares no function of the driver."""
    found = generate.declarations(header, []) if header.is_file() else {}
    if not found:
        raise ValueError(f"{header} declares no function of the driver; name a cuda.h or nvml.h of a CUDA toolkit")
    library = "nvml" if any(name.startswith("nvml") for name in found) else "cuda"
    classes = generate.read_classes(library)
    missing = sorted(found.keys() - classes.keys())
    head = f"{header}: {len(found)} functions, {len(missing)} without a class in {library}.classes"
    return [head, *(f"  {name}: {consequence(name, classes)}" for name in missing)]


def main(headers: list[str]) -> int:
    try:
        reviews = [review(Path(header)) for header in headers]
        if not reviews:
            raise ValueError("there is no header to review; name a cuda.h or nvml.h of a CUDA toolkit")
    except ValueError as wrong:
        print(wrong, file=sys.stderr)
        return 2
    print("\n".join(line for lines in reviews for line in lines))
    return 1 if any(len(lines) > 1 for lines in reviews) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
