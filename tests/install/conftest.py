from tests.install.helm_release import release
from tests.lab_api.conftest import kubectl, lab

__all__ = ["kubectl", "lab", "release"]
