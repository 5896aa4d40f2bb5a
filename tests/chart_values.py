"""Values that change which objects the chart makes, or what is in them. Each is rendered, walked, shown to a server."""

from typing import Any, Final

WATCHED: Final = ["team-a", "team-b"]
MONITORS: Final = {name: {"enabled": True} for name in ("serviceMonitor", "podMonitor", "prometheusRule", "dashboard")}
EXTERNAL: Final = {"mode": "external", "external": {"url": "rediss://redis.example.com:6379/0"}}
POD_OPTIONS: Final[dict[str, Any]] = {
    "imagePullSecrets": ["pull-a", {"name": "pull-b"}],
    "podAnnotations": {"example.com/a": "1"},
    "podLabels": {"example.com/l": "1"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]}
                ]
            }
        }
    },
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
    "priorityClassName": "system-cluster-critical",
    "runtimeClassName": "gvisor",
    "dnsPolicy": "None",
    "dnsConfig": {"nameservers": ["192.0.2.1"]},
    "hostAliases": [{"ip": "192.0.2.2", "hostnames": ["sume.example.com"]}],
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.example.com:3128"}],
    "extraEnvFrom": [{"secretRef": {"name": "more", "optional": True}}],
    "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/ca", "readOnly": True}],
}

COMBINATIONS: Final[dict[str, dict[str, Any]]] = {
    "defaults": {},
    "namespaced": {"watch": {"namespaces": WATCHED}},
    "no keys from renders": {"sume": {"credentialsFromNamespaces": []}},
    "keys from one namespace": {"sume": {"credentialsFromNamespaces": ["team-a"]}},
    "namespaced, keys from one": {"watch": {"namespaces": WATCHED}, "sume": {"credentialsFromNamespaces": ["team-a"]}},
    "no key": {"sume": {"existingSecret": ""}},
    "sandbox": {"sandbox": {"enabled": True, "args": ["--process-s", "5"]}},
    "sandbox, namespaced": {"sandbox": {"enabled": True}, "watch": {"namespaces": WATCHED}},
    "external redis": {"redis": EXTERNAL},
    "external redis, password and CA": {
        "redis": {"mode": "external", "external": {**EXTERNAL["external"], "existingSecret": "r", "caSecret": "ca"}}  # type: ignore[dict-item]
    },
    "redis on disk": {"redis": {"internal": {"persistence": {"enabled": True, "storageClassName": "fast"}}}},
    "redis on a claim": {"redis": {"internal": {"persistence": {"enabled": True, "existingClaim": "mine"}}}},
    "redis without password": {"redis": {"internal": {"auth": {"enabled": False}}}},
    "redis with my password": {"redis": {"internal": {"auth": {"existingSecret": "mine"}}}},
    "valkey": {"redis": {"internal": {"image": {"repository": "valkey/valkey", "tag": "8-alpine"}}}},
    "many pollers": {"poller": {"replicas": 3}},
    "autoscaling": {"poller": {"autoscaling": {"enabled": True, "minReplicas": 2, "maxReplicas": 9}}},
    "autoscaling by a metric": {
        "poller": {
            "autoscaling": {
                "enabled": True,
                "targetCPUUtilizationPercentage": "",
                "metrics": [
                    {
                        "type": "External",
                        "external": {"metric": {"name": "lag"}, "target": {"type": "Value", "value": 30}},
                    }
                ],
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
            }
        }
    },
    "network policies": {"networkPolicy": {"enabled": True}, "sandbox": {"enabled": True}},
    "network policies with egress": {
        "networkPolicy": {
            "enabled": True,
            "metricsFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
            "egress": [{"ports": [{"port": 443, "protocol": "TCP"}]}],
        }
    },
    "no rights made": {"rbac": {"create": False}},
    "own accounts": {
        "serviceAccount": {
            "controller": {"create": False, "name": "mine"},
            "poller": {"annotations": {"example.com/role": "x"}},
        }
    },
    "no aggregation": {"rbac": {"aggregate": False}},
    "no CRD": {"crds": {"install": False}},
    "no tests, no metrics": {"tests": {"enabled": False}, "metrics": {"service": {"enabled": False}}},
    "monitors": {"metrics": MONITORS},
    "every pod option": POD_OPTIONS,
    "host network": {"hostNetwork": True, "controller": {"httpPort": 9080}},
    "named": {
        "fullnameOverride": "renders",
        "commonLabels": {"team": "x"},
        "commonAnnotations": {"example.com/a": "y"},
    },
    "images": {
        "global": {"imageRegistry": "mirror.example.com", "imagePullSecrets": ["global-pull"]},
        "image": {"digest": f"sha256:{'0' * 64}"},
    },
    "extra objects": {
        "extraObjects": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-more"}},
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}-text'}",
        ]
    },
}
