"""Validation of workloads: selectors, counts, templates and update strategies."""

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lamina.ports.kube import Object
from lamina_lab.api.schema.pod_validation import template_spec
from lamina_lab.kubernetes import cron
from lamina_lab.kubernetes.errors import StatusCause, forbidden_field, invalid_value, required, unsupported_value

_POLICIES = ("Allow", "Forbid", "Replace")
_MAX_CRON_NAME = 52
"""Its jobs have eleven characters more, and 63 at most."""
_FREE_OF_STATEFUL_SETS = (
    *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
)
_UPDATE_OF_STATEFUL_SETS = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def _selector(spec: Object) -> list[StatusCause]:
    selector = spec.get("selector")
    if not selector:
        return [required("spec.selector")]
    wanted = selector.get("matchLabels") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        shown = "{" + ", ".join(f'"{key}":"{value}"' for key, value in labels.items()) + "}"
        detail = "`selector` does not match template `labels`"
        return [StatusCause("spec.template.metadata.labels", f"Invalid value: {shown}: {detail}")]
    return []


def _not_negative(spec: Object, field: str, at: str = "spec") -> list[StatusCause]:
    value = spec.get(field, 0)
    return [invalid_value(f"{at}.{field}", value, "must be greater than or equal to 0")] if value < 0 else []


def workload(obj: Object) -> list[StatusCause]:
    spec = obj["spec"]
    causes = _not_negative(spec, "replicas") + _selector(spec)
    template = spec["template"].get("spec") or {}
    causes += template_spec(template, "spec.template.spec")
    policy = template.get("restartPolicy", "Always")
    if policy != "Always":
        causes.append(unsupported_value("spec.template.spec.restartPolicy", policy, ["Always"]))
    return causes


def stateful_set(obj: Object) -> list[StatusCause]:
    spec = obj["spec"]
    causes = []
    policy = spec["podManagementPolicy"]
    if policy not in ("OrderedReady", "Parallel"):
        causes.append(invalid_value("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    causes += _update_strategy(spec["updateStrategy"])
    causes += [cause for field in ("revisionHistoryLimit", "minReadySeconds") for cause in _not_negative(spec, field)]
    first = (spec.get("ordinals") or {}).get("start", 0)
    if first < 0:
        causes.append(invalid_value("spec.ordinals.start", first, "must be greater than or equal to 0"))
    if (spec["template"].get("spec") or {}).get("activeDeadlineSeconds") is not None:
        detail = "activeDeadlineSeconds in StatefulSet is not Supported"
        causes.append(forbidden_field("spec.template.spec.activeDeadlineSeconds", detail))
    if spec.get("volumeClaimTemplates"):
        detail = "the lab has no PersistentVolumes; use an emptyDir or hostPath volume in spec.template.spec.volumes"
        causes.append(forbidden_field("spec.volumeClaimTemplates", detail))
    return causes + workload(obj)


def stateful_set_update(obj: Object, old: Object) -> list[StatusCause]:
    now, then = ({**each["spec"], **dict.fromkeys(_FREE_OF_STATEFUL_SETS)} for each in (obj, old))
    return [] if now == then else [forbidden_field("spec", _UPDATE_OF_STATEFUL_SETS)]


def _update_strategy(strategy: Object) -> list[StatusCause]:
    kind, rolling = strategy["type"], strategy.get("rollingUpdate")
    if kind not in ("RollingUpdate", "OnDelete"):
        return [invalid_value("spec.updateStrategy", kind, "must be 'RollingUpdate' or 'OnDelete'")]
    if kind == "OnDelete" and rolling is not None:
        field = "spec.updateStrategy.rollingUpdate"
        return [StatusCause(field, "Invalid value: only allowed for updateStrategy 'RollingUpdate'")]
    partition = (rolling or {}).get("partition", 0)
    if partition < 0:
        field = "spec.updateStrategy.rollingUpdate.partition"
        return [invalid_value(field, partition, "must be greater than or equal to 0")]
    return []


def job(obj: Object) -> list[StatusCause]:
    return _job_spec(obj["spec"], "spec")


def cron_job(obj: Object) -> list[StatusCause]:
    spec, causes = obj["spec"], []
    name = obj["metadata"].get("name", "")
    if len(name) > _MAX_CRON_NAME:
        causes.append(invalid_value("metadata.name", name, f"must be no more than {_MAX_CRON_NAME} characters"))
    causes += _schedule(spec) + _time_zone(spec)
    if spec["concurrencyPolicy"] not in _POLICIES:
        causes.append(unsupported_value("spec.concurrencyPolicy", spec["concurrencyPolicy"], _POLICIES))
    for field in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        causes += _not_negative(spec, field)
    return causes + _job_spec(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec")


def _schedule(spec: Object) -> list[StatusCause]:
    text = spec.get("schedule", "")
    if not text:
        return [required("spec.schedule")]
    if "TZ" in text:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        return [invalid_value("spec.schedule", text, detail)]
    try:
        cron.parse(text)
    except cron.ScheduleError as error:
        return [invalid_value("spec.schedule", text, str(error))]
    return []


def _time_zone(spec: Object) -> list[StatusCause]:
    name = spec.get("timeZone")
    if name is None:
        return []
    if not name:
        return [invalid_value("spec.timeZone", name, "timeZone must be nil or non-empty string")]
    if name.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [invalid_value("spec.timeZone", name, detail)]
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return [invalid_value("spec.timeZone", name, f"unknown time zone {name}")]
    return []


def _job_spec(spec: Object, at: str) -> list[StatusCause]:
    causes = []
    for field in ("parallelism", "completions", "backoffLimit"):
        causes += _not_negative(spec, field, at)
    causes += _completion_mode(spec, at)
    template = spec["template"].get("spec") or {}
    causes += template_spec(template, f"{at}.template.spec")
    policy = template.get("restartPolicy")
    if policy not in ("OnFailure", "Never"):
        causes.append(unsupported_value(f"{at}.template.spec.restartPolicy", policy, ["OnFailure", "Never"]))
    return causes


def _completion_mode(spec: Object, at: str) -> list[StatusCause]:
    mode = spec.get("completionMode", "NonIndexed")
    if mode not in ("Indexed", "NonIndexed"):
        return [unsupported_value(f"{at}.completionMode", mode, ["Indexed", "NonIndexed"])]
    if mode == "Indexed" and spec.get("completions") is None:
        return [required(f"{at}.completions", "when completion mode is Indexed")]
    return []
