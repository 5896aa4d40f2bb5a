{{- define "sume-operator.sandbox" -}}
name: sandbox
image: {{ include "sume-operator.operatorImage" . | quote }}
imagePullPolicy: {{ (.Values.image).pullPolicy | default "IfNotPresent" }}
args: {{ concat (list "sandbox" "--port" "8081") ((.Values.sandbox).args | default list) | toJson }}
ports:
  - {name: http, containerPort: 8081, protocol: TCP}
startupProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 150
livenessProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 15
  timeoutSeconds: 5
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end -}}
