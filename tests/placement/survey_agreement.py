"""The check that a survey agrees with `fit` and `explain`."""

from lamina.core.requests import PodRequest
from lamina.placement import (
    FITS,
    NO_NODE,
    NodeState,
    NodeTable,
    PodPlacement,
    Survey,
    explain,
    fit,
    miss_of,
    node_score,
    summary,
)


def check(survey: Survey, table: NodeTable, wanted: PodRequest, of: dict[str, NodeState]) -> None:
    """The survey says the same as `fit` of every node, and the same as `explain` of all."""
    survey.refresh()
    names = [*of, "unknown"]
    verdicts = survey.verdicts_on(table.rows_of(names)).tolist()
    assert verdicts.pop() == NO_NODE
    missed = []
    for state, verdict in zip(of.values(), verdicts, strict=True):
        answer = fit(wanted, state)
        if isinstance(answer, PodPlacement):
            assert verdict == FITS
            usage = table.usage[table.rows[state.name]]
            assert node_score(wanted.node_policy, float(usage)) == answer.score
        else:
            assert verdict > FITS and survey.misses[verdict] == miss_of(answer), (survey.misses[verdict], answer.reason)
            missed.append((survey.misses[verdict], [state.name]))
    if len(missed) == len(of):
        assert summary([], missed) == explain(wanted, of.values()).summary
