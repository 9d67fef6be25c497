"""Names lose what they have in common, and stay as different as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.browser import missing_browser
from tests.operations.dashboard.pages import Page

pytestmark = pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())
NAMES = st.lists(st.text("ab1é🟢緑-./_", min_size=1, max_size=8), min_size=1, max_size=5, unique=True)
CUT = """import("./formats.js").then(({ commonStart }) => arguments[0].map((names) => {
  const start = commonStart(names);
  return [names.map((name) => name.slice(0, start)), names.map((name) => name.slice(start))];
}))"""


async def test_what_is_cut_is_the_same_and_what_stays_differs(page: Page) -> None:
    cases: list[list[str]] = [["node-1", "node-2"], ["team/a", "team/b"], ["gpu-node-10", "gpu-node-11"]]

    @given(NAMES, st.text("ab-/", max_size=8))
    def collect(names: list[str], start: str) -> None:
        cases.append([start + name for name in names])

    collect()
    for names, (cut, left) in zip(cases, await page.run(CUT, cases), strict=True):
        assert len(set(cut)) == 1 and len(set(left)) == len(names)
        assert [one + other for one, other in zip(cut, left, strict=True)] == names
