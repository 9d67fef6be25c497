"""The pods of a manifest: Pods, and the templates of workloads with how many pods they make."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from lamina.configuration.yaml_documents import load_documents
from lamina.dialects import check_pod, check_workload, find_template
from lamina.dialects.groups import GROUP_APIS, GroupName
from lamina.dialects.workload_groups import metadata_of_owned
from lamina.errors import BadInput
from lamina.ledger.pod_groups import members_needed
from lamina.ports.kube import Object

_REPLICATED = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")
_WORKLOADS = (*_REPLICATED, "DaemonSet", "Job", "CronJob")


class PodTemplate(NamedTuple):
    """So many pods that are alike. `title` is what they are from, such as `Deployment web`."""

    title: str
    pod: Object
    number: int


def pod_templates(text: str, where: str, namespace: str) -> list[PodTemplate]:
    """All pods of YAML or JSON documents; `namespace` is that of objects that name none. Other kinds are left out.

    Raises BadInput for a text without pods, and for pods and workloads that no API server would accept.
    """
    objects = (obj for document in load_documents(text, where) for obj in _objects(document, where))
    found = templates_of(objects, where, namespace)
    if not found:
        raise BadInput(f"{where} has no pod and no workload; name a file with a Pod, Deployment or Job, for example")
    return found


def templates_of(objects: Iterable[Mapping[str, Any]], where: str, namespace: str) -> list[PodTemplate]:
    """The pods of these objects, as `pod_templates` has them; none where there are none. Raises BadInput."""
    return [template for obj in objects for template in _templates(obj, where, namespace)]


def pod_groups(text: str, where: str, namespace: str) -> dict[GroupName, int]:
    """How many members the PodGroups and the Jobs of the documents need. Raises BadInput."""
    found: dict[GroupName, int] = {}
    for obj in (obj for document in load_documents(text, where) for obj in _objects(document, where)):
        api = str(obj.get("apiVersion")).partition("/")[0]
        is_job = (api, obj["kind"]) == ("batch", "Job")
        if not is_job and (obj["kind"] != "PodGroup" or api not in GROUP_APIS):
            continue
        meta, spec = obj.get("metadata"), obj.get("spec")
        if not isinstance(meta, dict) or not isinstance(spec, dict):
            raise BadInput(f"{where}: a {obj['kind']} needs metadata and a spec")
        kind = "Job" if is_job else ""
        name = GroupName(api, str(meta.get("namespace") or namespace), str(meta.get("name") or ""), kind)
        name.check()
        found[name] = members_needed(name, spec)
    return found


def claim_manifests(text: str, where: str, namespace: str) -> tuple[list[Object], list[Object]]:
    """The ResourceClaims and the ResourceClaimTemplates of the documents. Raises BadInput."""
    found: dict[str, list[Object]] = {"ResourceClaim": [], "ResourceClaimTemplate": []}
    for obj in (obj for document in load_documents(text, where) for obj in _objects(document, where)):
        if obj["kind"] in found:
            meta = obj.get("metadata")
            if not isinstance(meta, dict) or not meta.get("name") or not isinstance(obj.get("spec"), dict):
                raise BadInput(f"{where}: a {obj['kind']} needs a name and a spec")
            found[obj["kind"]].append({**obj, "metadata": {"namespace": namespace, **meta}})
    return found["ResourceClaim"], found["ResourceClaimTemplate"]


def _objects(document: Any, where: str) -> Iterator[Mapping[str, Any]]:
    if document is None:
        return
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        raise BadInput(f"{where} contains an item that is not a Kubernetes object: it has no kind")
    if not document["kind"].endswith("List"):
        yield document
        return
    for item in document.get("items") or ():
        yield from _objects(item, where)


def _templates(obj: Mapping[str, Any], where: str, namespace: str) -> Iterator[PodTemplate]:
    kind = obj["kind"]
    if kind != "Pod" and kind not in _WORKLOADS:
        return
    meta = obj.get("metadata")
    if not isinstance(meta, dict):
        raise BadInput(f"{where}: a {kind} has no metadata")
    name = str(meta.get("name") or meta.get("generateName") or "")
    title = f"{kind} {name}"
    try:
        template, count = (obj, 1) if kind == "Pod" else _of_workload(obj)
        pod = {**template, "metadata": {**(template.get("metadata") or {}), "name": name}}
        pod["metadata"]["namespace"] = str(meta.get("namespace") or namespace)
        if kind != "Pod":
            pod["metadata"] |= metadata_of_owned(pod["metadata"], obj, name)
        check_pod(pod)
    except BadInput as problem:
        raise BadInput(f"{where}, {title}: {problem}") from problem
    yield PodTemplate(f"one pod of {title}" if kind == "DaemonSet" else title, pod, count)


def _of_workload(workload: Mapping[str, Any]) -> tuple[Mapping[str, Any], int]:
    check_workload(workload)
    _, template = find_template(workload)
    spec = workload.get("spec") or {}
    if workload["kind"] in _REPLICATED:
        return template, _number(spec, "replicas")
    if workload["kind"] == "CronJob":
        spec = spec["jobTemplate"].get("spec") or {}
    if workload["kind"] == "DaemonSet":
        return template, 1
    return template, min(_number(spec, "parallelism"), _number(spec, "completions", _number(spec, "parallelism")))


def _number(spec: Mapping[str, Any], key: str, default: int = 1) -> int:
    value = spec.get(key)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BadInput(f"{key} must be an integer of at least 0, got {value!r}")
    return value
