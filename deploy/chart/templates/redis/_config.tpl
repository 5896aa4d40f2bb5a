{{/* The files of its ConfigMap: configuration, start, probe. */}}
{{- define "sume-operator.redisFiles" -}}
redis.conf: |
  {{- include "sume-operator.redisConfig" . | nindent 2 }}
start.sh: |
  # The password goes into a file that only this user can read: an argument would show in the list of processes.
  set -eu
  umask 077
  echo 'include /etc/redis/redis.conf' >/run/redis/redis.conf
  if [ -e /etc/redis-password/password ]; then
    read -r password </etc/redis-password/password || [ -n "$password" ] || {
      echo 'the password in the Secret is empty' >&2
      exit 1
    }
    printf 'requirepass "%s"\n' "$(printf '%s' "$password" | sed 's/[\\"]/\\&/g')" >>/run/redis/redis.conf
  fi
  exec redis-server /run/redis/redis.conf
ping.sh: |
  # Fails, too, when the password in the Secret is another one by now: the restart that follows takes it up.
  REDISCLI_AUTH=
  if [ -e /etc/redis-password/password ]; then
    read -r REDISCLI_AUTH </etc/redis-password/password
  fi
  export REDISCLI_AUTH
  [ "$(redis-cli ping)" = PONG ]
{{- end -}}

{{- define "sume-operator.redisConfig" -}}
{{- $own := (.Values.redis).internal | default dict -}}
{{- $onDisk := ($own.persistence).enabled -}}
bind * -::*
protected-mode no
port 6379
dir /data
save ""
appendonly {{ ternary "yes" "no" (eq (toString $onDisk) "true") }}
maxmemory {{ $own.maxMemory | default "192mb" }}
maxmemory-policy noeviction
tcp-keepalive 60
{{- range $own.extraConfig }}
{{ . }}
{{- end }}
{{- end -}}

{{- define "sume-operator.redis" -}}
{{- $image := ((.Values.redis).internal).image | default dict -}}
name: redis
image: {{ include "sume-operator.image" (dict "root" . "image" $image "repository" "library/redis" "tag" "7.4-alpine") | quote }}
imagePullPolicy: {{ $image.pullPolicy | default "IfNotPresent" }}
command: [sh, /etc/redis/start.sh]
ports:
  - {name: redis, containerPort: 6379, protocol: TCP}
startupProbe:
  exec: {command: [sh, /etc/redis/ping.sh]}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 90
livenessProbe:
  exec: {command: [sh, /etc/redis/ping.sh]}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  exec: {command: [sh, /etc/redis/ping.sh]}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 1
volumeMounts:
  - {name: config, mountPath: /etc/redis, readOnly: true}
  {{- if include "sume-operator.hasAuth" . }}
  - {name: password, mountPath: /etc/redis-password, readOnly: true}
  {{- end }}
  - {name: run, mountPath: /run/redis}
  - {name: data, mountPath: /data}
{{- end -}}

{{- define "sume-operator.redisVolumes" -}}
{{- $own := (.Values.redis).internal | default dict -}}
{{- $secret := include "sume-operator.redisSecret" . | fromYaml -}}
- name: config
  configMap: {name: {{ include "sume-operator.fullname" . }}-redis}
{{- with $secret.name }}
- name: password
  secret:
    secretName: {{ . | quote }}
    items: [{key: {{ $secret.key | quote }}, path: password}]
{{- end }}
- name: run
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
- name: data
  {{- if ($own.persistence).enabled }}
  persistentVolumeClaim: {claimName: {{ ($own.persistence).existingClaim | default (printf "%s-redis" (include "sume-operator.fullname" .)) }}}
  {{- else }}
  emptyDir: {sizeLimit: 64Mi}
  {{- end }}
{{- end -}}
