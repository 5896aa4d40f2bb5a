{{/*
The one form of every pod of this chart. Options of the whole chart and those of the component become one: maps are
merged, lists appended, all else replaced.

root, component; own: values of the component; container: without what is the same everywhere; volumes: list;
account: name, and whether its token is mounted; restartPolicy.
*/}}

{{- define "sume-operator.podOptions" -}}
{{- $merged := dict -}}
{{- range $key := list "imagePullSecrets" "podAnnotations" "podLabels" "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" "priorityClassName" "runtimeClassName" "podSecurityContext" "securityContext" "hostNetwork" "dnsPolicy" "dnsConfig" "hostAliases" "extraEnv" "extraEnvFrom" "extraVolumes" "extraVolumeMounts" -}}
{{- $shared := index $.root.Values $key -}}
{{- $own := index $.own $key -}}
{{- if or (kindIs "map" $shared) (kindIs "map" $own) -}}
{{- $_ := set $merged $key (mergeOverwrite (deepCopy ($shared | default dict)) (deepCopy ($own | default dict))) -}}
{{- else if or (kindIs "slice" $shared) (kindIs "slice" $own) -}}
{{- $_ := set $merged $key (concat ($shared | default list) ($own | default list)) -}}
{{- else -}}
{{- $_ := set $merged $key (ternary $shared $own (or (kindIs "invalid" $own) (eq (toString $own) ""))) -}}
{{- end -}}
{{- end -}}
{{- toYaml $merged -}}
{{- end -}}

{{/* Names, and maps with `name`, of pull secrets -> the API's form, each once. */}}
{{- define "sume-operator.pullSecrets" -}}
{{- $names := list -}}
{{- range . }}{{ $names = append $names (ternary . (index (ternary dict . (kindIs "string" .)) "name") (kindIs "string" .)) }}{{ end -}}
{{- range (compact $names | uniq) }}
- name: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Metadata and spec of a pod. */}}
{{- define "sume-operator.podTemplate" -}}
{{- $root := .root -}}
{{- $own := .own | default dict -}}
{{- $options := include "sume-operator.podOptions" (dict "root" $root "own" $own) | fromYaml -}}
{{- $selector := include "sume-operator.selector" . | fromYaml -}}
metadata:
  labels:
    {{- mergeOverwrite (deepCopy ($root.Values.commonLabels | default dict)) $options.podLabels $selector | toYaml | nindent 4 }}
  {{- with mergeOverwrite (deepCopy $options.podAnnotations) (.annotations | default dict) }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with .account }}
  serviceAccountName: {{ . }}
  {{- end }}
  automountServiceAccountToken: {{ .account | empty | not }}
  enableServiceLinks: false
  {{- with .restartPolicy }}
  restartPolicy: {{ . }}
  {{- end }}
  {{- with $own.terminationGracePeriodSeconds | default .gracePeriod }}
  terminationGracePeriodSeconds: {{ include "sume-operator.text" . }}
  {{- end }}
  {{- with include "sume-operator.pullSecrets" (concat ((($root.Values.global).imagePullSecrets) | default list) ($options.imagePullSecrets | default list)) }}
  imagePullSecrets:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with $options.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  {{- with $options.runtimeClassName }}
  runtimeClassName: {{ . | quote }}
  {{- end }}
  {{- if $options.hostNetwork }}
  hostNetwork: true
  {{- end }}
  {{- with $options.dnsPolicy | default (ternary "ClusterFirstWithHostNet" "" (eq (toString $options.hostNetwork) "true")) }}
  dnsPolicy: {{ . }}
  {{- end }}
  {{- range $key := list "dnsConfig" "hostAliases" "nodeSelector" "tolerations" "affinity" }}
  {{- with index $options $key }}
  {{ $key }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- with $options.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- range . }}
    - {{ merge (deepCopy .) (dict "labelSelector" (dict "matchLabels" $selector)) | toYaml | nindent 6 | trim }}
    {{- end }}
  {{- end }}
  securityContext:
    {{- toYaml $options.podSecurityContext | nindent 4 }}
  containers:
    - {{ include "sume-operator.container" (dict "container" .container "options" $options "own" $own) | nindent 6 | trim }}
  volumes:
    - {name: tmp, emptyDir: {sizeLimit: 64Mi}}
    {{- with concat (.volumes | default list) ($options.extraVolumes | default list) }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* The container of a component, with what all have. A variable that is given twice is refused by the API server: extraEnv wins. */}}
{{- define "sume-operator.container" -}}
{{- $options := .options -}}
{{- $container := .container -}}
{{- $given := dict -}}
{{- range $options.extraEnv }}{{ $_ := set $given .name . }}{{ end -}}
{{- $env := list -}}
{{- range $container.env }}{{ if not (hasKey $given .name) }}{{ $env = append $env . }}{{ end }}{{ end -}}
{{- range $options.extraEnv }}{{ if eq (toJson .) (index $given .name | toJson) }}{{ $env = append $env . }}{{ $_ := unset $given .name }}{{ end }}{{ end -}}
{{- $mounts := concat (list (dict "name" "tmp" "mountPath" "/tmp")) ($container.volumeMounts | default list) ($options.extraVolumeMounts | default list) -}}
{{- $whole := merge (dict "volumeMounts" $mounts "securityContext" ($options.securityContext | default dict)) (omit $container "env" "volumeMounts") -}}
{{- if $env }}{{ $_ := set $whole "env" $env }}{{ end -}}
{{- with $options.extraEnvFrom }}{{ $_ := set $whole "envFrom" . }}{{ end -}}
{{- with .own.resources }}{{ $_ := set $whole "resources" . }}{{ end -}}
{{- toYaml $whole -}}
{{- end -}}
