{{/* The container of controller or poller. root, role, own. */}}
{{- define "sume-operator.role" -}}
{{- $port := include "sume-operator.text" (.own.httpPort | default 8080) -}}
name: {{ .role }}
image: {{ include "sume-operator.operatorImage" .root | quote }}
imagePullPolicy: {{ (.root.Values.image).pullPolicy | default "IfNotPresent" }}
args: [{{ .role }}]
env:
  {{- include "sume-operator.env" .root | nindent 2 }}
  - {name: SUME_HTTP_PORT, value: {{ $port | quote }}}
  {{- if .own.concurrency }}
  - {name: SUME_CONCURRENCY, value: {{ include "sume-operator.text" .own.concurrency | quote }}}
  {{- end }}
ports:
  - {name: http, containerPort: {{ $port }}, protocol: TCP}
startupProbe:
  # A start takes a second or two of CPU; on a node that is short of it, minutes. Killing it then only makes it worse.
  httpGet: {path: /healthz, port: http}
  periodSeconds: 2
  timeoutSeconds: 10
  failureThreshold: 150
livenessProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 15
  timeoutSeconds: 10
  failureThreshold: 4
readinessProbe:
  # Asks Redis and the API server where neither answered lately: up to 5 s.
  httpGet: {path: /readyz, port: http}
  periodSeconds: 5
  timeoutSeconds: 10
  failureThreshold: 2
volumeMounts:
  {{- include "sume-operator.mounts" .root | nindent 2 }}
{{- end -}}
