"""What stands between a document and the shell: its blocks, its prompts, and the comparison of outputs."""

import pytest

from tests.scenarios.documents.blocks import blocks, exchanges, without_prompts
from tests.scenarios.documents.outputs import compare, plain, unused
from tests.scenarios.documents.steps import Prints

MARKDOWN = (
    'text\n```bash\nfirst\n\nmore\n```\n\n``` \nsecond\n``` \n<pre><code class="x">\n  a: &lt;b&gt;\n</code></pre>\n'
)
LITERAL = "a\n\n   .. code-block::\n\n      first\n\n        more\n\n   text\n\n   .. code-block::\n\n      second\n"


def test_blocks_of_every_form_in_order() -> None:
    assert blocks(MARKDOWN) == ["first\n\nmore", "second", "  a: <b>"]
    assert blocks(LITERAL) == ["first\n\n  more", "second"]
    assert blocks("no block") == []


def test_prompts() -> None:
    block = "(base) [root@host dir]# one -a\nprinted\nuser@host:~/dev/$ two\n$ three\n# no prompt"
    assert exchanges(block) == [("", ""), ("one -a", "printed\n"), ("two", ""), ("three", "# no prompt")]
    assert exchanges("before\n$ one") == [("", "before\n"), ("one", "")]
    assert exchanges("output") == [("", "output")]
    assert without_prompts("$ one \\\n  && two") == "one \\\n  && two"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mon Apr  8 10:01:26 2024", "Tue May 14 23:59:59 2026"),
        (
            "GPU 0: T4 (UUID: GPU-491287c9-bc95-b926-a488-9503064e72a1)",
            "GPU 0: T4 (UUID: GPU-" + "0" * 8 + "-0000" * 3 + "-" + "0" * 12 + ")",
        ),
        ("| N/A   35C    P0             38W /  250W |", "| N/A   8C    P8      9W / 250W |"),
        ("pod-6988cc8f8f-22gt2   1/1     Running   0          53s", "pod-h44rntvflm-5qldg 1/1 Running 0 2m1s"),
        ("|    0   N/A  N/A    543063      C   server    30MiB |", "| 0 N/A N/A 1 C server 30MiB |"),
        ("...\n...<snip>...\na", "\na"),
    ],
)
def test_what_varies_is_the_same(one: str, other: str) -> None:
    assert compare(one, other).unexplained(Prints("")) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("|   0MiB /  5120MiB |      0%      Default |", "|   0MiB /  5121MiB |      0%      Default |"),
        (
            "pod-6988cc8f8f-22gt2   1/1     Running   0          53s",
            "pod-6988cc8f8f-22gt2   0/1     Pending   0          53s",
        ),
        ("| 0 N/A N/A 1 C server 30MiB |", "| 0 N/A N/A 1 M+C server 30MiB |"),
        ("MIG 3g.20gb 9 1 4:4", "MIG 3g.20gb 9 1 0:4"),
        ("a\na", "a"),
    ],
)
def test_what_differs_shows_unless_it_is_explained(one: str, other: str) -> None:
    found = compare(one, other)
    assert found.unexplained(Prints("")) != []
    every = Prints("", differs={".": "reason"}, more={".": "reason"})
    assert found.unexplained(every) == []
    assert unused(every, [compare("same", "same")]) == [".", "."], "an explanation of nothing is one too many"


def test_an_extract_may_lack_lines_but_none_of_its_own() -> None:
    extract = Prints("", whole=False)
    assert compare("b", "a\nb\nc").unexplained(extract) == []
    assert compare("b\nd", "a\nb\nc").unexplained(extract) == ["- d"]
    assert plain("  x   y ,\n\nUnable to use a TTY - input is not a terminal") == ["x y "]
