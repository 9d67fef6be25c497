"""Reading and writing objects through a real kubectl."""

import json

from tests.kubectl import Kubectl
from tests.lab_api.servers import Threaded

MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "busybox:1", env: [{name: A, value: "1"}, {name: B, value: "2"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: green, size: small}
"""


def test_apply_creates_then_leaves_alone_then_changes(lab: Threaded, kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=MANIFEST) == "deployment.apps/web created\nconfigmap/settings created\n"
    before = lab.get("deployments.apps", "web")
    unchanged = "deployment.apps/web unchanged\nconfigmap/settings unchanged\n"
    assert kubectl("apply", "-f", "-", stdin=MANIFEST) == unchanged
    assert lab.get("deployments.apps", "web") is before
    changed = MANIFEST.replace("replicas: 2", "replicas: 3").replace(", size: small", "")
    changed = changed.replace('{name: A, value: "1"}, ', "")
    done = kubectl.run("apply", "-f", "-", stdin=changed)
    assert (done.stdout, done.stderr) == ("deployment.apps/web configured\nconfigmap/settings configured\n", "")
    after = lab.get("deployments.apps", "web")
    assert (after["spec"]["replicas"], after["metadata"]["generation"]) == (3, 2)
    assert after["spec"]["template"]["spec"]["containers"][0]["env"] == [{"name": "B", "value": "2"}]
    assert lab.get("configmaps", "settings")["data"] == {"color": "green"}


def test_apply_keeps_what_others_wrote(lab: Threaded, kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=MANIFEST)
    kubectl("scale", "deployment/web", "--replicas=5")
    kubectl("label", "deployment/web", "team=blue")
    kubectl("apply", "-f", "-", stdin=MANIFEST.replace("  replicas: 2\n", ""))
    after = lab.get("deployments.apps", "web")
    assert after["metadata"]["labels"] == {"app": "web", "team": "blue"}


def test_server_side_apply_removes_fields_that_are_no_longer_applied(lab: Threaded, kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", "-", stdin=MANIFEST)
    before = lab.get("configmaps", "settings")
    kubectl("apply", "--server-side", "-f", "-", stdin=MANIFEST)
    assert lab.get("configmaps", "settings") is before
    kubectl("apply", "--server-side", "-f", "-", stdin=MANIFEST.replace(", size: small", ""))
    after = lab.get("configmaps", "settings")
    assert after["data"] == {"color": "green"}
    [entry] = after["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("kubectl", "Apply")
    assert entry["fieldsV1"] == {"f:data": {"f:color": {}}}
    clash = MANIFEST.replace("green", "red")
    refused = kubectl.refused("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=clash)
    assert 'conflict with "kubectl": .data.color' in refused
    kubectl("apply", "--server-side", "--force-conflicts", "--field-manager=other", "-f", "-", stdin=clash)
    assert lab.get("configmaps", "settings")["data"]["color"] == "red"


def test_the_many_forms_of_get(lab: Threaded, kubectl: Kubectl) -> None:
    lab.running_pod("a")
    lab.running_pod("b")
    lab.create(
        "pods", {"metadata": {"name": "c"}, "spec": {"containers": [{"name": "m", "image": "x"}]}}, "kube-system"
    )
    assert kubectl("get", "pods", "-o", "name") == "pod/a\npod/b\n"
    assert [each["metadata"]["name"] for each in json.loads(kubectl("get", "pods", "-o", "json"))["items"]] == [
        "a",
        "b",
    ]
    assert kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}") == "n1 n1"
    columns = "custom-columns=NAME:.metadata.name,NODE:.spec.nodeName"
    assert kubectl("get", "pods", "-o", columns, "--no-headers").split() == ["a", "n1", "b", "n1"]
    assert "uid: " in kubectl("get", "pod", "a", "-o", "yaml")
    assert kubectl("get", "pods", "-l", "app in (b, z)", "-o", "name") == "pod/b\n"
    assert kubectl("get", "pods", "-l", "app!=b", "-o", "name") == "pod/a\n"
    assert kubectl("get", "pods", "--field-selector", "metadata.name=a", "-o", "name") == "pod/a\n"
    assert kubectl("get", "pods", "-A", "--field-selector", "spec.nodeName=", "-o", "name") == "pod/c\n"
    everywhere = kubectl("get", "pods", "-A", "--sort-by=.metadata.namespace", "--no-headers")
    assert [line.split()[0] for line in everywhere.splitlines()] == ["default", "default", "kube-system"]
    assert 'pods "z" not found' in kubectl.refused("get", "pod", "z")
    assert "field label not supported: spec.nope" in kubectl.refused("get", "pods", "--field-selector", "spec.nope=1")


def test_tables_have_the_columns_of_kubernetes(lab: Threaded, kubectl: Kubectl) -> None:
    lab.running_pod("a")
    [head, row] = kubectl("get", "pods", "-o", "wide").splitlines()
    assert head.split("  ")[0] == "NAME"
    assert " ".join(head.split()) == "NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES"
    assert row.split()[:4] == ["a", "1/1", "Running", "0"]
    assert row.split()[5:] == ["10.0.0.1", "n1", "<none>", "<none>"]
    kubectl("apply", "-f", "-", stdin=MANIFEST)
    [head, row] = kubectl("get", "deployments", "-o", "wide").splitlines()
    assert head.split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    assert (row.split()[1], row.split()[5:]) == ("0/2", ["main", "busybox:1", "app=web"])


def test_watch_shows_changes_as_rows(lab: Threaded, kubectl: Kubectl) -> None:
    lab.running_pod("a")
    watching = kubectl.start("get", "pods", "-w", "-l", "app")
    assert watching.stdout is not None
    assert watching.stdout.readline().split()[:3] == ["NAME", "READY", "STATUS"]
    assert watching.stdout.readline().split()[:3] == ["a", "1/1", "Running"]
    lab.patch("pods", "a", {"status": {"phase": "Succeeded", "reason": "Done"}}, "status")
    assert watching.stdout.readline().split()[:3] == ["a", "0/1", "Done"]
    lab.running_pod("b")
    assert watching.stdout.readline().split()[:3] == ["b", "0/1", "Pending"]
    watching.kill()
    watching.communicate()


def test_describe_speaks_of_pods_nodes_and_deployments(lab: Threaded, kubectl: Kubectl) -> None:
    capacity = {"cpu": "8", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "20"}
    node = {"metadata": {"name": "n1", "labels": {"gpu": "on"}}, "status": {"capacity": capacity}}
    lab.create("nodes", node)
    pod = lab.running_pod("a")
    about = {"kind": "Pod", "name": "a", "namespace": "default", "uid": pod["metadata"]["uid"]}
    seen = {"reason": "FailedScheduling", "type": "Warning", "message": "needs 10000 MiB", "count": 2}
    times = {"firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z"}
    lab.create("events", {"metadata": {"name": "a.1"}, "involvedObject": about, **seen, **times})
    described = kubectl("describe", "pod", "a")
    assert "Node:             n1" in described
    assert "needs 10000 MiB" in described
    described = kubectl("describe", "node", "n1")
    assert "nvidia.com/gpu:  20" in described
    assert "default                     a" in described
    kubectl("apply", "-f", "-", stdin=MANIFEST)
    assert "RollingUpdateStrategy:  25% max unavailable, 25% max surge" in kubectl("describe", "deployment", "web")


def test_the_three_kinds_of_patch(lab: Threaded, kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=MANIFEST)
    sidecar = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}}
    kubectl("patch", "deployment", "web", "-p", json.dumps(sidecar))
    kubectl("patch", "deployment", "web", "--type=merge", "-p", '{"spec":{"replicas":7,"paused":true}}')
    operations = [{"op": "test", "path": "/spec/paused", "value": True}, {"op": "remove", "path": "/spec/paused"}]
    kubectl("patch", "deployment", "web", "--type=json", "-p", json.dumps(operations))
    spec = lab.get("deployments.apps", "web")["spec"]
    assert [each["name"] for each in spec["template"]["spec"]["containers"]] == ["side", "main"]
    assert (spec["replicas"], "paused" in spec) == (7, False)
    failing = '[{"op":"test","path":"/spec/replicas","value":1}]'
    assert "due to an error in our request" in kubectl.refused("patch", "deploy", "web", "--type=json", "-p", failing)


def test_labels_annotations_and_edits(lab: Threaded, kubectl: Kubectl) -> None:
    lab.running_pod("a")
    kubectl("label", "pod", "a", "tier=front")
    kubectl("annotate", "pod", "a", "note=hello world")
    assert "already has a value (front)" in kubectl.refused("label", "pod", "a", "tier=back")
    kubectl("label", "pod", "a", "tier-", "app-")
    kubectl.environment["EDITOR"] = "sed -i s/hello/goodbye/"
    kubectl("edit", "pod", "a")
    meta = lab.get("pods", "a")["metadata"]
    assert ("labels" in meta, meta["annotations"]["note"]) == (False, "goodbye world")


def test_create_commands_that_send_protobuf(lab: Threaded, kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "team")
    kubectl("-n", "team", "create", "configmap", "cm", "--from-literal=a=b")
    kubectl("-n", "team", "create", "secret", "generic", "s", "--from-literal=password=x")
    kubectl("-n", "team", "create", "deployment", "d", "--image=i:1", "--replicas=0", "--port=80", "--", "sleep", "5")
    kubectl("-n", "team", "create", "job", "j", "--image=i:1", "--", "true")
    assert lab.get("configmaps", "cm", "team")["data"] == {"a": "b"}
    assert lab.get("secrets", "s", "team")["data"] == {"password": "eA=="}
    spec = lab.get("deployments.apps", "d", "team")["spec"]
    assert spec["replicas"] == 0
    [container] = spec["template"]["spec"]["containers"]
    assert (container["command"], container["ports"]) == (["sleep", "5"], [{"containerPort": 80, "protocol": "TCP"}])
    job = lab.get("jobs.batch", "j", "team")["spec"]
    uid = lab.get("jobs.batch", "j", "team")["metadata"]["uid"]
    assert job["selector"]["matchLabels"] == {"batch.kubernetes.io/controller-uid": uid}
    assert job["template"]["metadata"]["labels"]["job-name"] == "j"
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"
    kubectl("run", "p", "--image=i:1", "--restart=Never")
    assert lab.get("pods", "p")["spec"]["restartPolicy"] == "Never"


def test_wait_for_conditions_values_and_deletion(lab: Threaded, kubectl: Kubectl) -> None:
    lab.running_pod("a")
    kubectl("wait", "--for=condition=Ready", "pod/a", "--timeout=120s")
    waiting = kubectl.start("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/a", "--timeout=120s")
    lab.patch("pods", "a", {"status": {"phase": "Succeeded"}}, "status")
    assert waiting.communicate(timeout=150)[0] == "pod/a condition met\n"
    waiting = kubectl.start("wait", "--for=delete", "pod/a", "--timeout=120s")
    lab.delete("pods", "a")
    waiting.communicate(timeout=150)
    assert waiting.returncode == 0
    lab.running_pod("b")
    assert "timed out waiting" in kubectl.refused("wait", "--for=delete", "pod/b", "--timeout=1s")


def test_rollout_status_follows_a_deployment(lab: Threaded, kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=MANIFEST)
    following = kubectl.start("rollout", "status", "deployment/web", "--timeout=120s")
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 2)
    lab.patch("deployments.apps", "web", {"status": {"observedGeneration": 1, **counts}}, "status")
    assert 'deployment "web" successfully rolled out' in following.communicate(timeout=150)[0]
    kubectl("rollout", "restart", "deployment/web")
    assert lab.get("deployments.apps", "web")["metadata"]["generation"] == 2


def test_scale(lab: Threaded, kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=MANIFEST)
    kubectl("scale", "deployment/web", "--replicas=4", "--current-replicas=2")
    assert lab.get("deployments.apps", "web")["spec"]["replicas"] == 4
    assert "Expected replicas to be 2" in kubectl.refused("scale", "deploy/web", "--replicas=1", "--current-replicas=2")


def test_dry_run_stores_nothing(lab: Threaded, kubectl: Kubectl) -> None:
    assert "created (server dry run)" in kubectl("apply", "--dry-run=server", "-f", "-", stdin=MANIFEST)
    assert 'deployments.apps "web" not found' in kubectl.refused("get", "deployment", "web")
    kubectl("apply", "-f", "-", stdin=MANIFEST)
    kubectl("delete", "--dry-run=server", "deployment", "web")
    difference = kubectl.run("diff", "-f", "-", stdin=MANIFEST.replace("replicas: 2", "replicas: 9"))
    assert difference.returncode == 1
    assert "+  replicas: 9" in difference.stdout
    assert lab.get("deployments.apps", "web")["spec"]["replicas"] == 2


def test_events_have_two_names_and_one_storage(lab: Threaded, kubectl: Kubectl) -> None:
    newer = """
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: e1}
eventTime: "2026-01-01T00:00:00.000000Z"
reason: Waiting
type: Warning
note: the best GPU has 2768 MiB free
action: Scheduling
reportingController: lamina
reportingInstance: lamina-0
regarding: {apiVersion: v1, kind: Pod, name: a, namespace: default}
"""
    kubectl("create", "-f", "-", stdin=newer)
    stored = lab.get("events", "e1")
    assert (stored["message"], stored["involvedObject"]["name"]) == ("the best GPU has 2768 MiB free", "a")
    for name in ("events", "events.events.k8s.io"):
        row = kubectl("get", name, "--no-headers").split(maxsplit=4)
        assert row[1:4] == ["Warning", "Waiting", "pod/a"]
        assert row[4].strip() == "the best GPU has 2768 MiB free"
    chosen = kubectl("get", "events", "--field-selector", "involvedObject.name=a", "-o", "name")
    assert chosen == "event/e1\n"
    assert "the best GPU" in kubectl("events", "--for", "pod/a")


def test_api_resources_lists_everything_served(lab: Threaded, kubectl: Kubectl) -> None:
    names = kubectl("api-resources", "--no-headers", "-o", "name").split()
    assert len(names) == len(set(names))
    assert {"pods", "deployments.apps", "jobs.batch", "leases.coordination.k8s.io", "nodes"} <= set(names)
    assert {each.storage if not each.shares else "events.events.k8s.io" for each in lab.server.api.catalog} <= set(
        names
    )
    assert "lamina-lab" in kubectl("version")


def test_replace_with_an_old_revision_conflicts(lab: Threaded, kubectl: Kubectl) -> None:
    lab.create("configmaps", {"metadata": {"name": "cm"}, "data": {"a": "1"}})
    old = kubectl("get", "configmap", "cm", "-o", "json")
    kubectl("patch", "configmap", "cm", "--type=merge", "-p", '{"data":{"a":"2"}}')
    refused = kubectl.refused("replace", "-f", "-", stdin=old.replace('"1"', '"3"'))
    assert 'Operation cannot be fulfilled on configmaps "cm": the object has been modified' in refused


def test_bad_manifests_are_refused_with_kubernetes_messages(lab: Threaded, kubectl: Kubectl) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec:\n  containers:\n  - {name: m}\n"
    assert 'The Pod "x" is invalid: spec.containers[0].image: Required value' in kubectl.refused(
        "create", "-f", "-", stdin=pod
    )
    pod = pod.replace("{name: m}", '{name: m, image: i, resources: {limits: {nvidia.com/gpu: "0.5"}}}')
    refused = kubectl.refused("create", "-f", "-", stdin=pod)
    assert "must be an integer" in refused
    assert "spec.containers[0].resources.limits[nvidia.com/gpu]" in refused


def test_deleting_by_selector_and_all(lab: Threaded, kubectl: Kubectl) -> None:
    for name in ("a", "b", "c"):
        lab.create("configmaps", {"metadata": {"name": name, "labels": {"which": name}}})
    kubectl("delete", "configmaps", "-l", "which=a")
    assert kubectl("get", "configmaps", "-o", "name") == "configmap/b\nconfigmap/c\n"
    kubectl("delete", "configmaps", "--all")
    assert kubectl("get", "configmaps", "-o", "name") == ""
    kubectl("delete", "configmap", "a", "--ignore-not-found")


def test_deleting_a_bound_pod_waits_for_its_kubelet(lab: Threaded, kubectl: Kubectl) -> None:
    lab.running_pod("a")
    deleting = kubectl.start("delete", "pod", "a", "--grace-period=5")
    watching = kubectl.start("wait", "--for=jsonpath={.metadata.deletionGracePeriodSeconds}=5", "pod/a")
    watching.communicate(timeout=150)
    assert deleting.poll() is None
    assert " Terminating " in kubectl("get", "pod", "a")
    lab.delete("pods", "a", grace=0)
    deleting.communicate(timeout=150)
    assert deleting.returncode == 0
    lab.running_pod("b")
    kubectl("delete", "pod", "b", "--force", "--grace-period=0")
    assert kubectl("get", "pods", "-o", "name") == ""
