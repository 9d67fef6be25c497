"""The types of an installation's values: what each may be, in words for people, and patterns that Helm checks too."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Name = Annotated[str, Meta(description="a name, or an empty text")]
Text = Annotated[str, Meta(min_length=1, description="a text that is not empty")]
Repository = Annotated[
    str,
    Meta(
        pattern="^([^/@:]+(:[0-9]+)?/)?[^@:]+$",
        description="a name such as REGISTRY/lamina; image.tag or image.digest names the image in it",
    ),
]
Digest = Annotated[
    str,
    Meta(pattern="^(sha256:[0-9a-f]{64})?$", description="sha256: and 64 digits from 0 to f, or an empty text"),
]
PullPolicy = Annotated[
    str, Meta(pattern="^(Always|IfNotPresent|Never)$", description="Always, IfNotPresent or Never")
]  # fmt: skip
Count = Annotated[int, Meta(ge=1, description="a whole number from 1 on")]
Switch = Annotated[bool, Meta(description="true or false")]
Port = Annotated[int, Meta(ge=1, le=65535, description="a whole number from 1 to 65535")]
DnsPolicy = Annotated[
    str,
    Meta(
        pattern="^(|ClusterFirst|ClusterFirstWithHostNet|Default|None)$",
        description="ClusterFirst, ClusterFirstWithHostNet, Default, None or an empty text",
    ),
]
_STEP = r"/(\.?[A-Za-z0-9_-]|\.\.[A-Za-z0-9._-])[A-Za-z0-9._-]*"
"""One directory of a path, neither . nor .., of characters that never need quotes."""
Folder = Annotated[
    str,
    Meta(
        pattern=rf"^({_STEP})+$",
        description="an absolute path of letters, digits, dots, - and _, without . and .. as a folder and without a "
        "slash at its end, such as /var/lib/kubelet",
    ),
]
OwnFolder = Annotated[
    str,
    Meta(
        pattern=rf"^({_STEP}){{2,}}$",
        description="an absolute path as for other folders, but of two folders or more, such as /var/lib/lamina, since "
        "`lamina uninstall` has to write in the one above",
    ),
]
Empty = Literal[""]
"""In the place of a directory."""
Objects = Annotated[tuple[dict[str, Any], ...], Meta(description="a list of objects as Kubernetes has them")]
Object = Annotated[dict[str, Any], Meta(description="keys and values as Kubernetes has them")]
Resources = Annotated[Object, Meta(title="Resource requests and limits of a pod")]
PriorityClass = Annotated[Name, Meta(title="Priority class of the pods")]
Labels = Annotated[dict[str, str], Meta(description='labels and values, both as texts, such as gpu: "on"')]
LogLevel = Annotated[
    str, Meta(pattern="^(DEBUG|INFO|WARNING|ERROR)$", description="DEBUG, INFO, WARNING or ERROR")
]  # fmt: skip
Url = Annotated[str, Meta(pattern="^(https?://.+)?$", description="an address such as https://10.96.0.20:8445")]


def asks(cpu: str, memory: str, limit: str) -> dict[str, Any]:
    """Resource requests, and a limit on memory."""
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": limit}}


class Component(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Placement and resources of the pods of a component."""

    nodeSelector: Annotated[Labels, Meta(title="Node selector of the pods")] = {}
    tolerations: Annotated[Objects, Meta(title="Tolerations of the pods")] = ()
    resources: Resources = {}
    podLabels: Annotated[Labels, Meta(title="Additional labels of the pods")] = {}
    podAnnotations: Annotated[Labels, Meta(title="Additional annotations of the pods")] = {}
    priorityClassName: PriorityClass = ""
