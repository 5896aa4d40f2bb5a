{{/*
What each account may do: one rule for each call of adapters/cluster.py, and none besides. Discovery, /version and the
OpenAPI that tells whether the CRD is current are open to every account.
*/}}

{{/* kopf lists and watches, the sweep lists; the rescue of stuck deletions reads and takes off the finalizer. */}}
{{- define "sume-operator.rules.controller" -}}
- apiGroups: [render.sume.com]
  resources: [sumerenders]
  verbs: [get, list, watch, patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end -}}

{{/* A turn reads a render, notes its key and job and sets the finalizer (patch), writes its status, and deletes it at the end of its TTL. */}}
{{- define "sume-operator.rules.poller" -}}
- apiGroups: [render.sume.com]
  resources: [sumerenders]
  verbs: [get, patch, delete]
- apiGroups: [render.sume.com]
  resources: [sumerenders/status]
  verbs: [patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end -}}

{{/* The Secret that a render names in spec.credentialsSecretRef. */}}
{{- define "sume-operator.rules.credentials" -}}
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
{{- end -}}

{{/* root, name, rules, account (name), component; namespace: empty for a ClusterRole. A role and its binding. */}}
{{- define "sume-operator.grant" -}}
{{- $kind := ternary "Role" "ClusterRole" (not (empty .namespace)) }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  {{- include "sume-operator.metadata" . | nindent 2 }}
rules:
  {{- .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  {{- include "sume-operator.metadata" . | nindent 2 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: {{ $kind }}, name: {{ .name }}}
subjects:
  - {kind: ServiceAccount, name: {{ .account }}, namespace: {{ .root.Release.Namespace }}}
{{- end -}}
