#!/bin/bash -eu
# One program and one corpus for each target of tests/fuzzing, for ClusterFuzzLite's runners.
pip3 install .
for target in configuration pods usage_files; do
    cp tests/fuzzing/one.py "fuzz_$target.py"
    compile_python_fuzzer "fuzz_$target.py" --paths .
    python3 - "$target" "$OUT/fuzz_${target}_seed_corpus.zip" <<'PROGRAM'
import sys, zipfile
from tests.fuzzing.seeds import seeds
with zipfile.ZipFile(sys.argv[2], "w") as corpus:
    for number, seed in enumerate(seeds(sys.argv[1])):
        corpus.writestr(str(number), seed)
PROGRAM
done
