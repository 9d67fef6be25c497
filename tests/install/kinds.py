"""Kinds of what is installed, as `lamina.ports.kube` has kinds."""

from lamina.ports.kube import Object, Resource

_OF_THE_CLUSTER = (
    *("Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
)


def resource_of(document: Object) -> Resource:
    group, _, version = document["apiVersion"].rpartition("/")
    kind = document["kind"]
    plural = kind.lower()[:-1] + "ies" if kind.endswith("y") else kind.lower() + "s"
    return Resource(group, version, plural, kind, kind not in _OF_THE_CLUSTER)
