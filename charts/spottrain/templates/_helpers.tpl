{{- define "spottrain.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "spottrain.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "spottrain.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "spottrain.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "spottrain.serviceAccountName" -}}
{{- default (include "spottrain.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "spottrain.selectorLabels" -}}
app.kubernetes.io/name: {{ include "spottrain.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "spottrain.releaseLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "spottrain.labels" -}}
{{ include "spottrain.selectorLabels" . }}
{{ include "spottrain.releaseLabels" . }}
{{- end -}}

{{- define "spottrain.agentSelectorLabels" -}}
app.kubernetes.io/name: {{ include "spottrain.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: agent
{{- end -}}

{{- define "spottrain.agentLabels" -}}
{{ include "spottrain.agentSelectorLabels" . }}
{{ include "spottrain.releaseLabels" . }}
{{- end -}}

{{- define "spottrain.testSelectorLabels" -}}
app.kubernetes.io/name: {{ include "spottrain.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: test
{{- end -}}

{{- define "spottrain.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* key=value,key=value from a map, in the form of the operator's settings */}}
{{- define "spottrain.labelList" -}}
{{- $pairs := list -}}
{{- range $key, $value := . -}}
{{- $pairs = append $pairs (printf "%s=%s" $key $value) -}}
{{- end -}}
{{- join "," $pairs -}}
{{- end -}}

{{/*
The operator brings workers back, so it must not stand on what is taken away. NotIn also holds for nodes without the
label. A test keeps this list equal to the operator's own (spottrain.api.clouds).
*/}}
{{- define "spottrain.offSpot" -}}
- key: karpenter.sh/capacity-type
  operator: NotIn
  values: [spot]
- key: eks.amazonaws.com/capacityType
  operator: NotIn
  values: [SPOT]
- key: cloud.google.com/gke-spot
  operator: NotIn
  values: ["true"]
- key: cloud.google.com/gke-preemptible
  operator: NotIn
  values: ["true"]
- key: cloud.google.com/gke-provisioning
  operator: NotIn
  values: [spot, preemptible]
- key: kubernetes.azure.com/scalesetpriority
  operator: NotIn
  values: [spot]
- key: oci.oraclecloud.com/oke-is-preemptible
  operator: NotIn
  values: ["true"]
- key: together.ai/compute-class
  operator: NotIn
  values: [preemptible]
{{- range $key, $value := .Values.spotLabels }}
- key: {{ $key | quote }}
  operator: NotIn
  values: [{{ $value | quote }}]
{{- end }}
{{- end -}}

{{/* Terms of which a spot node meets at least one: the operator's off-spot list, turned round */}}
{{- define "spottrain.onSpot" -}}
{{- range fromYamlArray (include "spottrain.offSpot" .) }}
- matchExpressions:
    - key: {{ .key | quote }}
      operator: In
      values: {{ toJson .values }}
{{- end }}
{{- end -}}

{{/* What the operator does in the namespaces that it serves; it deletes jobs whose ttlAfterFinished is over */}}
{{- define "spottrain.namespacedRules" -}}
- apiGroups: [spottrain.dev]
  resources: [spottrainingjobs]
  verbs: [list, watch, delete]
- apiGroups: [spottrain.dev]
  resources: [spottrainingjobs/status]
  verbs: [patch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [batch]
  resources: [jobs/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
- apiGroups: [""]
  resources: [services]
  verbs: [get, create]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end -}}

{{/* What it reads of the cluster as a whole */}}
{{- define "spottrain.clusterRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
{{- end -}}
