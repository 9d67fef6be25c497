"""What Helm prints after an installation: how to see that it works, and a first share."""

from lamina.core.component_names import NAMESPACE

NOTES = f"""\
Lamina {{{{ .Chart.AppVersion }}}} is installed in the namespace {NAMESPACE}.

1. Wait until it is ready:

    kubectl -n {NAMESPACE} rollout status deployment/lamina-controller
    kubectl -n {NAMESPACE} rollout status daemonset/lamina-agent

   Agents start on nodes with NVIDIA GPUs, as the value agent.nodeSelectorTerms says.

2. See the GPUs, and check the installation:

    kubectl get inventories
    lamina doctor
    lamina gpus

3. Give a container part of a GPU:

    resources:
      limits:
        nvidia.com/gpu: 1
        nvidia.com/gpumem: 4000   # MiB

4. See what pods hold, and why one is pending:

    lamina pods
    lamina why POD
{{{{- if .Values.dashboard.enabled }}}}

5. Open the dashboard at https://localhost:9396, with a token of `kubectl create token`:

    kubectl -n {NAMESPACE} port-forward service/lamina-dashboard 9396:443
{{{{- end }}}}
"""
