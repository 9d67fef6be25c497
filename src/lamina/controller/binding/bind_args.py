"""What kube-scheduler sends to have a pod bound."""

from msgspec import Struct

from lamina.core.object_names import is_object_name
from lamina.errors import BadInput


class BindArgs(Struct, frozen=True, kw_only=True, rename="lower"):
    """`ExtenderBindingArgs` of kube-scheduler."""

    podName: str
    podNamespace: str
    podUID: str
    node: str

    @property
    def pod(self) -> str:
        """The pod, for messages."""
        return f"pod {self.podNamespace}/{self.podName}"

    def check(self) -> None:
        """Raises BadInput for names that no object has."""
        for field in ("podName", "podNamespace", "node"):
            if not is_object_name(getattr(self, field)):
                raise BadInput(f"{field} must be the name of an object of Kubernetes, got {getattr(self, field)!r}")
