from tests.install.helm_release import release
from tests.lab_api.conftest import lab

__all__ = ["lab", "release"]
