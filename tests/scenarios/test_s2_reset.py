"""S2.10: the reset of "Sharing your GPU in the cloud", in one command."""

from tests.scenarios.conftest import StartLab
from tests.scenarios.reset import reset_and_return


def test_s2_10_reset(start_lab: StartLab) -> None:
    lab = start_lab("reset")
    reset_and_return(lab, lab.root / lab.name / "n" / "0" / "cdi")
