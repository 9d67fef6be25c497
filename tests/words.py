"""Words that this project avoids: archaic or roundabout ones, and British spellings."""

import re
from collections.abc import Iterator

_AVOIDED = r"""\b(?:
    anew | befall(?:s|en)? | befell | beside | lest | mend(?:s|ed|ing)? | thereupon | told | wherein
    | who(?:m|m?so)ever | whoever | nobody | somebody
    | all\ the\ same | asks?\ (?:for\ )?no | by\ now | control\ part | leads?\ nowhere | needed\ are | to\ be\ made
    | (?:gives?|giving|given|gave)\ out | (?:takes?|taking|taken|took)\ away
    | allowed\ (?:is|are)(?!\ (?:None|not|(?-i:[A-Z_]+))\b)
    | (?:behaviou|colou|favou|flavou|honou|labou|neighbou)r\w*
    | cancelled(?!\(\)) | cancelling(?!\(\)) | modell(?:ed|ing) | signall(?:ed|ing) | travell(?:ed|ing)
    | (?:centr|fibr|metr)es? | catalogues? | licences? | learnt | spelt | whilst | amongst
    | (?:anal|catal|paral)yse[ds]?
    | (?:capital|categor|character|custom|emphas|final|general|initial|maxim|minim|normal|optim|organ|priorit
      |recogn|serial|special|standard|summar|synchron|util|visual|virtual)is(?:e[drs]?|ing|ations?)
    )\b"""
"""`cancelled()` and `cancelling()` are methods of asyncio's tasks; `allowed is None` is code."""

AVOIDED = re.compile(_AVOIDED.replace(r"\ ", r"[\s\#*]+"), re.IGNORECASE | re.VERBOSE)
"""A phrase is also found where it continues on the next line of a comment."""


def avoided(text: str) -> Iterator[tuple[int, str]]:
    """The avoided words of the text, each with its line."""
    for match in AVOIDED.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, " ".join(re.split(r"[\s#*]+", match.group()))
