{{/*
Parts that several templates have in common, each on one line, so that it fits at any depth.

Values that a user sets are inserted as JSON, which is YAML too. Empty fields are omitted: Kubernetes drops empty lists,
so kubectl would report a change at every apply. Ports name their protocol, because servers before 1.21 require it in
server-side apply, which Helm 4 uses.
*/}}

{{/* The labels that select the pods of a component. */}}
{{- define "lamina.selector" -}}
{app.kubernetes.io/name: lamina, app.kubernetes.io/component: {{ . }}}
{{- end }}

{{/* The labels of all pods. Those that change at each upgrade are none of them. */}}
{{- define "lamina.ofPods" -}}
app.kubernetes.io/name: lamina, app.kubernetes.io/instance: {{ .Release.Name | toJson }}, app.kubernetes.io/part-of: lamina
{{- end }}

{{/* The labels of all objects. */}}
{{- define "lamina.common" -}}
{{ include "lamina.ofPods" . }}, app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | toJson }}, app.kubernetes.io/managed-by: {{ .Release.Service | toJson }}, helm.sh/chart: {{ print .Chart.Name "-" .Chart.Version | replace "+" "_" | toJson }}
{{- end }}

{{/* The same as a mapping, to be merged with the labels that a user sets. */}}
{{- define "lamina.commonMapping" -}}
{ {{- include "lamina.common" . }}}
{{- end }}

{{/* The labels of an object of a component: (list . "agent"). */}}
{{- define "lamina.labels" -}}
{ {{- include "lamina.common" (index . 0) }}, app.kubernetes.io/component: {{ index . 1 }}}
{{- end }}

{{/* The labels of its pods. */}}
{{- define "lamina.podLabels" -}}
{ {{- include "lamina.ofPods" (index . 0) }}, app.kubernetes.io/component: {{ index . 1 }}}
{{- end }}

{{/* A tag may not contain the plus sign of a version between releases. */}}
{{- define "lamina.image" -}}
{{ if .Values.image.digest }}{{ print .Values.image.repository "@" .Values.image.digest | toJson }}{{ else }}{{ print .Values.image.repository ":" (.Values.image.tag | default (.Chart.AppVersion | replace "+" "_")) | toJson }}{{ end }}
{{- end }}

{{/* Of probes at the address of metrics. kubelet does not verify certificates. */}}
{{- define "lamina.scheme" -}}
{{ if .Values.metrics.protected }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}

{{/* The security context of containers that do not need root. */}}
{{- define "lamina.unprivileged" -}}
{allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, readOnlyRootFilesystem: true, seccompProfile: {type: RuntimeDefault}, runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532}
{{- end }}

{{/*
The security context of containers that mount something which the node sees: only privileged ones may, and Kubernetes
requires allowPrivilegeEscalation of them.
*/}}
{{- define "lamina.mounting" -}}
{allowPrivilegeEscalation: true, capabilities: {drop: [ALL], add: [SYS_ADMIN]}, readOnlyRootFilesystem: true, seccompProfile: {type: RuntimeDefault}, runAsUser: 0, privileged: true}
{{- end }}

{{/* Where SELinux keeps containers apart: the type of folders with files that containers read and write. */}}
{{- define "lamina.selinux" }}
            {{- if .Values.openshift.enabled }}
            - {name: LAMINA_SELINUX_TYPE, value: container_file_t}
            {{- end }}
{{- end }}

{{/* Affinity that spreads the replicas of a component over nodes whose architecture the image has. */}}
{{- define "lamina.spread" -}}
{podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: {labelSelector: {matchLabels: {{ include "lamina.selector" . }}}, topologyKey: kubernetes.io/hostname}}]}, nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}]}]}}}
{{- end }}

{{/* Where the pods of a component with replicas run: (dict "part" "controller" "values" .Values.controller). */}}
{{- define "lamina.placed" }}
      {{- if .values.priorityClassName }}
      priorityClassName: {{ .values.priorityClassName | toJson }}
      {{- end }}
      affinity: {{ if .values.affinity }}{{ .values.affinity | toJson }}{{ else }}{{ include "lamina.spread" .part }}{{ end }}
      nodeSelector: {{ include "lamina.nodeSelector" .values }}
      {{- if .values.tolerations }}
      tolerations: {{ .values.tolerations | toJson }}
      {{- end }}
{{- end }}

{{/* Of a component. Nodes with Windows may carry the other labels. */}}
{{- define "lamina.nodeSelector" -}}
{{ merge (dict) .nodeSelector (dict "kubernetes.io/os" "linux") | toJson }}
{{- end }}

{{/* One replica is replaced at a time, the new one first. */}}
{{- define "lamina.rollout" -}}
{type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
{{- end }}

{{/* The version of the cluster as Kubernetes tags it, such as v1.29.3, without vendor suffixes. */}}
{{- define "lamina.schedulerVersion" -}}
{{ .Values.scheduler.image.tag | default (regexFind "^v[0-9]+[.][0-9]+[.][0-9]+" .Capabilities.KubeVersion.Version) }}
{{- end }}

{{- define "lamina.budgetVersion" -}}
{{ if semverCompare ">=1.21-0" .Capabilities.KubeVersion.Version }}policy/v1{{ else }}policy/v1beta1{{ end }}
{{- end }}

{{/*
What endpoints of metrics have in common. Without honorLabels, namespaces and pods would be those of the component. The
token is Prometheus's, in its own pod.
*/}}
{{- define "lamina.endpoint" }}
      honorLabels: true
      {{- if .Values.metrics.protected }}
      scheme: https
      tlsConfig: {insecureSkipVerify: true}
      bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
      {{- end }}
{{- end }}

{{/* Who may read metrics, in a rule of a network policy. */}}
{{- define "lamina.metricsFrom" }}
      {{- if .Values.networkPolicy.metricsFrom }}
      from: {{ .Values.networkPolicy.metricsFrom | toJson }}
      {{- end }}
{{- end }}

{{/*
Which nodes have an agent, and how a container there sees the GPUs: (dict "root" . "nodes" LABELS "apart" POOLS), the
nodes with these labels but those of these pools.
*/}}
{{- define "lamina.gpuNodes" }}
      {{- if .root.Values.agent.runtimeClassName }}
      runtimeClassName: {{ .root.Values.agent.runtimeClassName | toJson }}
      {{- end }}
      nodeSelector: {{ merge .nodes (include "lamina.nodeSelector" .root.Values.agent | fromYaml) | toJson }}
      {{- if or .root.Values.agent.nodeSelectorTerms .apart }}
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms: {{ if not .apart }}{{ .root.Values.agent.nodeSelectorTerms | toJson }}{{ else }}
              {{- range .root.Values.agent.nodeSelectorTerms | default (list (dict)) }}
              - {{ merge (dict "matchExpressions" (append (get . "matchExpressions" | default (list)) (include "lamina.apart" $ | fromYaml))) . | toJson }}
              {{- end }}
              {{- end }}
      {{- end }}
      {{- if .root.Values.agent.tolerations }}
      tolerations: {{ .root.Values.agent.tolerations | toJson }}
      {{- end }}
{{- end }}

{{/* An expression for nodes of none of these pools. */}}
{{- define "lamina.apart" -}}
{key: {{ .root.Values.agent.poolLabel | toJson }}, operator: NotIn, values: [{{ range .apart }}{{ .name | toJson }}, {{ end }}]}
{{- end }}
