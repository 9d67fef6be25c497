"""What agents say of containers, in a few words."""

from lamina.report.cluster_use import ClusterUse, ShareFigures


def use_of(*holder: str, gpu: str = "GPU-n-0", **figures: float | None) -> ClusterUse:
    """What one container does, given as namespace, pod and container, with fields of ShareFigures."""
    namespace, pod, container = holder
    use = ClusterUse()
    use.shares[namespace, pod, container] = {gpu: ShareFigures(**figures)}  # type: ignore[arg-type]
    return use
