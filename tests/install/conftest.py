from tests.lab_api.conftest import kubectl, lab

__all__ = ["kubectl", "lab"]
