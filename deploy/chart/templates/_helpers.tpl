{{/*
Names, labels, images and settings. Every value is read so that one missing does no harm: with --reuse-values an upgrade
comes with the values of an older chart.
*/}}

{{- define "sume-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* Short enough that every suffix fits into the 63 characters of a Service or a Job. */}}
{{- define "sume-operator.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $full .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* Of cluster-wide objects: two releases of one name live in two namespaces. */}}
{{- define "sume-operator.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "sume-operator.fullname" .) -}}
{{- end -}}

{{- define "sume-operator.selector" -}}
app.kubernetes.io/name: {{ include "sume-operator.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* metadata without name: labels and annotations. root, component; labels, annotations: more of them. */}}
{{- define "sume-operator.metadata" -}}
{{- $labels := dict "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_")
    "app.kubernetes.io/version" .root.Chart.AppVersion "app.kubernetes.io/managed-by" .root.Release.Service
    "app.kubernetes.io/part-of" "sume-operator" -}}
{{- $selector := include "sume-operator.selector" . | fromYaml -}}
labels:
  {{- mergeOverwrite (deepCopy (.root.Values.commonLabels | default dict)) (deepCopy (.labels | default dict)) $labels $selector | toYaml | nindent 2 }}
{{- with mergeOverwrite (deepCopy (.root.Values.commonAnnotations | default dict)) (deepCopy (.annotations | default dict)) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* root, image: registry, repository, tag, digest; tag: where the image names none. */}}
{{- define "sume-operator.image" -}}
{{- $image := .image | default dict -}}
{{- $registry := default $image.registry (.root.Values.global).imageRegistry -}}
{{- $name := $image.repository | default .repository -}}
{{- if $registry }}{{ $name = printf "%s/%s" (trimSuffix "/" $registry) $name }}{{ end -}}
{{- if $image.digest }}{{ printf "%s@%s" $name $image.digest }}{{ else }}{{ printf "%s:%s" $name ($image.tag | default .tag | toString) }}{{ end -}}
{{- end -}}

{{- define "sume-operator.operatorImage" -}}
{{- include "sume-operator.image" (dict "root" . "image" .Values.image "repository" "sume-operator" "tag" .Chart.AppVersion) -}}
{{- end -}}

{{- define "sume-operator.serviceAccount" -}}
{{- $account := index (.root.Values.serviceAccount | default dict) .role | default dict -}}
{{- if and (eq (toString $account.create) "false") (not $account.name) -}}
{{- fail (printf "serviceAccount.%s.create is false: name the account to use in serviceAccount.%s.name" .role .role) -}}
{{- end -}}
{{- default (printf "%s-%s" (include "sume-operator.fullname" .root) .role) $account.name -}}
{{- end -}}

{{/* "true", or nothing. Values of the list that are missing count as the default. */}}
{{- define "sume-operator.isOn" -}}
{{- $value := .value -}}
{{- if kindIs "invalid" $value }}{{ $value = .default }}{{ end -}}
{{- if eq (toString $value) "true" }}true{{ end -}}
{{- end -}}

{{- define "sume-operator.hasRedis" -}}
{{- if ne (default "internal" (.Values.redis).mode) "external" }}true{{ end -}}
{{- end -}}

{{- define "sume-operator.hasSandbox" -}}
{{- if (.Values.sandbox).enabled }}true{{ end -}}
{{- end -}}

{{/* Of the internal Redis: "true" where it asks for a password, and where that password is the chart's own. */}}
{{- define "sume-operator.hasAuth" -}}
{{- if include "sume-operator.hasRedis" . }}{{ include "sume-operator.isOn" (dict "value" (((.Values.redis).internal).auth).enabled "default" true) }}{{ end -}}
{{- end -}}

{{- define "sume-operator.hasOwnPassword" -}}
{{- if and (include "sume-operator.hasAuth" .) (not (((.Values.redis).internal).auth).existingSecret) }}true{{ end -}}
{{- end -}}

{{/* name and key of the Secret with the password of Redis, as YAML; nothing where there is none. */}}
{{- define "sume-operator.redisSecret" -}}
{{- $external := ((.Values.redis).external) | default dict -}}
{{- $auth := (((.Values.redis).internal).auth) | default dict -}}
{{- if include "sume-operator.hasOwnPassword" . }}
name: {{ include "sume-operator.fullname" . }}-redis
key: password
{{- else if include "sume-operator.hasAuth" . }}
name: {{ $auth.existingSecret | quote }}
key: {{ $auth.existingSecretKey | default "password" | quote }}
{{- else if and (not (include "sume-operator.hasRedis" .)) $external.existingSecret }}
name: {{ $external.existingSecret | quote }}
key: {{ $external.existingSecretKey | default "password" | quote }}
{{- end }}
{{- end -}}

{{- define "sume-operator.redisURL" -}}
{{- if include "sume-operator.hasRedis" . -}}
redis://{{ include "sume-operator.fullname" . }}-redis.{{ .Release.Namespace }}.svc:6379/0
{{- else -}}
{{- $external := ((.Values.redis).external) | default dict -}}
{{- $url := $external.url | default "" -}}
{{- if not (regexMatch "^(rediss?|unix)://" $url) -}}
{{- fail "redis.mode is external: redis.external.url wants a redis://, rediss:// or unix:// URL, such as rediss://redis.example.com:6379/0" -}}
{{- end -}}
{{- if regexMatch "^[a-z]+://[^/@]*:[^/@]*@" $url -}}
{{- fail "redis.external.url holds a password, which everybody could read in the pods: put it into a Secret and name that in redis.external.existingSecret" -}}
{{- end -}}
{{- if $external.caSecret -}}
{{- if not (hasPrefix "rediss://" $url) -}}
{{- fail "redis.external.caSecret is for TLS: redis.external.url wants to begin with rediss://" -}}
{{- end -}}
{{- $url = printf "%s%sssl_ca_certs=/etc/sume-operator/redis-ca/ca.crt" $url (ternary "&" "?" (contains "?" $url)) -}}
{{- end -}}
{{- $url -}}
{{- end -}}
{{- end -}}

{{- define "sume-operator.sandboxURL" -}}
http://{{ include "sume-operator.fullname" . }}-sandbox.{{ .Release.Namespace }}.svc:8081/v1
{{- end -}}

{{/* A number as a program reads it: Helm holds all numbers as floats, and would write 1e+06. */}}
{{- define "sume-operator.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}{{ else }}{{ toString . }}{{ end -}}
{{- end -}}

{{/* The settings of controller, pollers and tests, as a list of variables. Empty values are left to the program. */}}
{{- define "sume-operator.env" -}}
{{- $sume := .Values.sume | default dict -}}
{{- $sandbox := include "sume-operator.hasSandbox" . -}}
{{- $env := dict "REDIS_URL" (include "sume-operator.redisURL" .) -}}
{{- if include "sume-operator.redisSecret" . }}{{ $_ := set $env "REDIS_PASSWORD_FILE" "/etc/sume-operator/redis/password" }}{{ end -}}
{{- range $key := list "authMode" "submissionsEnabled" "maxActiveJobs" "readsPerMinute" "readsPerDay" "submissionsPerMinute" "submissionsPerDay" "pollSeconds" "pollMinSeconds" "pollMaxSeconds" "errorSeconds" "requestTimeoutSeconds" "kubernetesTimeoutSeconds" "submitTimeoutSeconds" "leaseSeconds" "sweepSeconds" "statusRefreshSeconds" "queueKey" "logFormat" "logLevel" -}}
{{- $value := index $sume $key -}}
{{- if not (or (kindIs "invalid" $value) (eq (toString $value) "")) -}}
{{- $_ := set $env (printf "SUME_%s" (snakecase $key | upper)) (include "sume-operator.text" $value) -}}
{{- end -}}
{{- end -}}
{{- with $sume.url }}{{ $_ := set $env "SUME_API_URL" . }}{{ end -}}
{{- with $sume.defaultKeyNamespaces }}{{ $_ := set $env "SUME_DEFAULT_KEY_NAMESPACES" (join "," .) }}{{ end -}}
{{- with (.Values.watch).namespaces }}{{ $_ := set $env "SUME_WATCH_NAMESPACES" (join "," .) }}{{ end -}}
{{- if $sandbox -}}
{{- $_ := set $env "SUME_API_URL" (include "sume-operator.sandboxURL" .) -}}
{{- $_ := set $env "SUME_API_KEY" "sandbox" -}}
{{- $_ := set $env "SUME_QUEUE_KEY" "sume:sandbox:polls" -}}
{{- else if $sume.existingSecret -}}
{{- $_ := set $env "SUME_API_KEY_FILE" "/etc/sume-operator/key/apiKey" -}}
{{- end -}}
{{- range $name, $value := $env }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end -}}

{{/* Secrets as files: they may change, and the API key may be missing, without a restart. */}}
{{- define "sume-operator.volumes" -}}
{{- $sume := .Values.sume | default dict -}}
{{- $redis := include "sume-operator.redisSecret" . | fromYaml -}}
{{- if and $sume.existingSecret (not (include "sume-operator.hasSandbox" .)) }}
- name: api-key
  secret:
    secretName: {{ $sume.existingSecret | quote }}
    optional: true
    items: [{key: {{ $sume.existingSecretKey | default "apiKey" | quote }}, path: apiKey}]
{{- end }}
{{- with $redis.name }}
- name: redis-password
  secret:
    secretName: {{ . | quote }}
    items: [{key: {{ $redis.key | quote }}, path: password}]
{{- end }}
{{- if not (include "sume-operator.hasRedis" .) }}
{{- with ((.Values.redis).external).caSecret }}
- name: redis-ca
  secret:
    secretName: {{ . | quote }}
    items: [{key: {{ (($.Values.redis).external).caSecretKey | default "ca.crt" | quote }}, path: ca.crt}]
{{- end }}
{{- end }}
{{- end -}}

{{- define "sume-operator.mounts" -}}
{{- $paths := dict "api-key" "key" "redis-password" "redis" "redis-ca" "redis-ca" -}}
{{- range (include "sume-operator.volumes" . | fromYamlArray) }}
- {name: {{ .name }}, mountPath: /etc/sume-operator/{{ index $paths .name }}, readOnly: true}
{{- end }}
{{- end -}}
