"""Texts that are no YAML, or YAML that is no plain mapping. Many make PyYAML raise other errors than its own."""

_LAUGHS = "\n".join(
    ["a0: &a0 [1, 1]", *[f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)], "b: {c: *a9}"]
)

ODD_TEXTS = [
    "[1, 2]",
    "just text",
    "7",
    "? [a]\n: 1",
    "? {a: b}\n: 1",
    "? !!set {a}\n: 1",
    "a: 1\na: 2",
    "a: {b: 1, b: 2}",
    "a: [",
    "a: 1\n---\nb: 2",
    "a: *nowhere",
    "a: &a [*a]",
    "&a {b: *a}",
    "a: 2026-99-99",
    "a: !!timestamp soon",
    "a: !!int ''",
    "a: !!int x",
    "a: !!float x",
    "a: !!bool perhaps",
    "a: !!binary é",
    "a: !!map [1]",
    "!!set [1]",
    "a: !!omap [a]",
    "a: !!python/object:os.system x",
    "a: " + "9" * 5000,
    "<<: 3",
    "{<<: {a: 1}, <<: {b: 1}}",
    "\x00",
    "a: \x01",
    "[" * 500,
    "{a: " * 400,
    _LAUGHS,
]
