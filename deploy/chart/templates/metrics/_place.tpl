{{/* metadata of what Prometheus or Grafana read: root, name, own (namespace, labels, annotations). */}}
{{- define "sume-operator.monitorMetadata" -}}
name: {{ .name }}
namespace: {{ .own.namespace | default .root.Release.Namespace }}
{{ include "sume-operator.metadata" (dict "root" .root "component" "metrics" "labels" .own.labels "annotations" .own.annotations) }}
{{- end -}}

{{- define "sume-operator.endpoint" -}}
port: http
path: /metrics
honorLabels: true # `namespace` of a metric is the one of the renders
{{- range $key := list "interval" "scrapeTimeout" "relabelings" "metricRelabelings" }}
{{- with index $ $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The pods that have metrics. */}}
{{- define "sume-operator.measured" -}}
matchLabels:
  app.kubernetes.io/name: {{ include "sume-operator.name" . }}
  app.kubernetes.io/instance: {{ .Release.Name }}
matchExpressions:
  - {key: app.kubernetes.io/component, operator: In, values: [controller, poller]}
{{- end -}}
