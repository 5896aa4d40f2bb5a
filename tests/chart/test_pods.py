"""Everything that runs: each pod of each combination of values is walked."""

from typing import Any, Final

import pytest

from chart_values import COMBINATIONS, POD_OPTIONS
from helm import NAMESPACE, Helm, environment, kinds, named, pods
from kube import Body
from sume_operator.cli import main
from sume_operator.settings import Settings
from sume_sandbox.command import sandbox

WITH_TOKEN: Final = {"controller", "poller", "redis-password", "test"}
PROBED: Final = {"controller", "poller", "redis", "sandbox"}
ROLES: Final = ("controller", "poller")


def values_of(name: str) -> dict[str, Any]:
    return COMBINATIONS[name]


@pytest.mark.parametrize("name", COMBINATIONS)
def test_every_pod_is_hardened_and_bounded(helm: Helm, name: str) -> None:
    for component, pod in pods(helm.objects(values_of(name))):
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is (component in WITH_TOKEN), component
        assert ("serviceAccountName" in spec) is (component in WITH_TOKEN), component
        assert spec["enableServiceLinks"] is False
        context = spec["securityContext"]
        assert context["runAsNonRoot"] is True
        assert context["runAsUser"] == context["fsGroup"] == (999 if component == "redis" else 65532)
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        (container,) = spec["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert set(container["resources"]["requests"]) == {"cpu", "memory"}
        assert container["resources"]["limits"]["memory"]
        assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]
        volumes = [volume["name"] for volume in spec["volumes"]]
        assert len(volumes) == len(set(volumes))
        assert {mount["name"] for mount in container["volumeMounts"]} <= set(volumes)
        assert ("livenessProbe" in container and "readinessProbe" in container) is (component in PROBED)


def test_pod_options_reach_every_pod(helm: Helm) -> None:
    seen = set()
    for component, pod in pods(helm.objects({**POD_OPTIONS, "sandbox": {"enabled": True}})):
        seen.add(component)
        spec, metadata = pod["spec"], pod["metadata"]
        assert spec["imagePullSecrets"] == [{"name": "pull-a"}, {"name": "pull-b"}]
        assert metadata["annotations"]["example.com/a"] == "1"
        assert metadata["labels"]["example.com/l"] == "1"
        for key in ("nodeSelector", "tolerations", "affinity", "priorityClassName", "runtimeClassName", "hostAliases"):
            assert spec[key] == POD_OPTIONS[key]
        assert (spec["dnsPolicy"], spec["dnsConfig"]) == (POD_OPTIONS["dnsPolicy"], POD_OPTIONS["dnsConfig"])
        (constraint,) = spec["topologySpreadConstraints"]
        assert constraint["labelSelector"]["matchLabels"]["app.kubernetes.io/component"] == component
        container = spec["containers"][0]
        assert POD_OPTIONS["extraEnv"][0] in container["env"]
        assert container["envFrom"] == POD_OPTIONS["extraEnvFrom"]
        assert POD_OPTIONS["extraVolumes"][0] in spec["volumes"]
        assert POD_OPTIONS["extraVolumeMounts"][0] in container["volumeMounts"]
    assert seen == {"controller", "poller", "sandbox", "redis", "redis-password", "test"}


def test_pull_secrets_and_registry_of_global_reach_every_pod_once(helm: Helm) -> None:
    shared = {"imageRegistry": "mirror.example.com/hub/", "imagePullSecrets": ["a", {"name": "b"}]}
    values = {"global": shared, "imagePullSecrets": ["b", "c"], "sandbox": {"enabled": True}}
    for component, pod in pods(helm.objects(values)):
        assert pod["spec"]["imagePullSecrets"] == [{"name": name} for name in "abc"]
        image = pod["spec"]["containers"][0]["image"]
        wanted = "library/redis:7.4-alpine" if component == "redis" else "sume-operator:"
        assert image.startswith(f"mirror.example.com/hub/{wanted}")


def test_image_by_tag_and_by_digest(helm: Helm) -> None:
    digest = f"sha256:{'a' * 64}"
    of_tag = {"image": {"registry": "r.example.com", "repository": "x/y", "tag": "1.2"}}
    of_digest = {"image": {**of_tag["image"], "digest": digest}}
    for values, image in ((of_tag, "r.example.com/x/y:1.2"), (of_digest, f"r.example.com/x/y@{digest}")):
        shown = {pod["spec"]["containers"][0]["image"] for name, pod in pods(helm.objects(values)) if name != "redis"}
        assert shown == {image}


def test_a_variable_of_the_chart_can_be_replaced(helm: Helm) -> None:
    """Twice in one list the API server would refuse it. The order of one's own stays, for $(NAME)."""
    own = [{"name": "Z", "value": "1"}, {"name": "SUME_LOG_LEVEL", "value": "debug"}, {"name": "A", "value": "$(Z)"}]
    values = {"sume": {"logLevel": "error"}, "poller": {"extraEnv": own}}
    poller = named(helm.objects(values), "Deployment", "-poller")
    names = [each["name"] for each in poller["spec"]["template"]["spec"]["containers"][0]["env"]]
    assert len(names) == len(set(names))
    assert names[-3:] == ["Z", "SUME_LOG_LEVEL", "A"]
    assert environment(poller["spec"]["template"])["SUME_LOG_LEVEL"] == "debug"


def accepted(pod: Body, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings that a process in this pod would run with."""
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment(pod).items():
        monkeypatch.setenv(name, value)
    return Settings()


@pytest.mark.parametrize("name", COMBINATIONS)
def test_the_program_takes_the_variables_of_every_pod(helm: Helm, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for component, pod in pods(helm.objects(values_of(name))):
        if component in (*ROLES, "test"):
            accepted(pod, monkeypatch)


def test_the_program_takes_the_arguments_of_every_pod(helm: Helm) -> None:
    """Parsed, not run."""
    seen = set()
    for name in ("defaults", "sandbox", "sandbox, namespaced"):
        for component, pod in pods(helm.objects(values_of(name))):
            if component != "redis":
                command, *arguments = pod["spec"]["containers"][0]["args"]
                (sandbox if command == "sandbox" else main.commands[command]).make_context(command, arguments)
                seen.add(command)
    assert seen == {"controller", "poller", "sandbox", "check", "redis-secret"}


def test_empty_values_leave_the_defaults_of_the_program(helm: Helm, monkeypatch: pytest.MonkeyPatch) -> None:
    for component, pod in pods(helm.objects()):
        if component in ROLES:
            settings = accepted(pod, monkeypatch)
            given = {"redis_url", "redis_password_file", "sume_api_key_file"}
            assert settings.model_dump(exclude=given) == Settings.model_construct().model_dump(exclude=given)


def test_every_setting_arrives_as_it_was_given(helm: Helm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers too that Helm would write as 1e+07, and 0, which is no empty value."""
    sume = {
        "url": "https://api.open.sume.com", "authMode": "x-api-key", "defaultKeyNamespaces": ["a", "b"],
        "submissionsEnabled": False, "maxActiveJobs": 0, "readsPerMinute": 0, "readsPerDay": 10_000_000,
        "submissionsPerMinute": 1, "submissionsPerDay": 300, "pollSeconds": 0.5, "pollMinSeconds": 0.25,
        "pollMaxSeconds": 86400, "errorSeconds": 7, "requestTimeoutSeconds": 20, "kubernetesTimeoutSeconds": 9,
        "submitTimeoutSeconds": 80, "leaseSeconds": 50.5, "sweepSeconds": 30, "statusRefreshSeconds": 600,
        "queueKey": "mine", "logFormat": "text", "logLevel": "warning",
    }  # fmt: skip
    values = {"sume": sume, "watch": {"namespaces": ["a", "b"]}, "poller": {"concurrency": 32, "httpPort": 9000}}
    objects = helm.objects(values)
    settings = accepted(named(objects, "Deployment", "-poller")["spec"]["template"], monkeypatch)
    for key, value in sume.items():
        field = "sume_" + "".join(f"_{char.lower()}" if char.isupper() else char for char in key)
        if key == "url":
            assert settings.sume_api_url == f"{value}/v1"
        else:
            got = getattr(settings, field)
            assert (sorted(got) if isinstance(got, frozenset) else got) == value, key
    assert settings.sume_watch_namespaces == {"a", "b"}
    assert (settings.sume_concurrency, settings.sume_http_port) == (32, 9000)


def test_the_key_is_a_file_that_may_be_missing(helm: Helm, monkeypatch: pytest.MonkeyPatch) -> None:
    pod = named(helm.objects(), "Deployment", "-poller")["spec"]["template"]
    volume = next(each for each in pod["spec"]["volumes"] if each["name"] == "api-key")
    assert volume["secret"]["optional"] is True
    assert volume["secret"]["secretName"] == "sume-api-key"
    mount = next(each for each in pod["spec"]["containers"][0]["volumeMounts"] if each["name"] == "api-key")
    assert "subPath" not in mount, "a mounted single file never changes"
    path = f"{mount['mountPath']}/{volume['secret']['items'][0]['path']}"
    assert str(accepted(pod, monkeypatch).sume_api_key_file) == path


def test_the_sandbox_cannot_touch_real_renders(helm: Helm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is set beside it."""
    sume = {"url": "https://api.sume.com/v1", "existingSecret": "real", "queueKey": "sume:polls"}
    objects = helm.objects({"sandbox": {"enabled": True}, "sume": sume})
    service = named(objects, "Service", "-sandbox")
    for component, pod in pods(objects):
        if component in (*ROLES, "test"):
            settings = accepted(pod, monkeypatch)
            address = f"{service['metadata']['name']}.{NAMESPACE}.svc:{service['spec']['ports'][0]['port']}"
            assert settings.sume_api_url == f"http://{address}/v1"
            assert settings.sume_queue_key != Settings.model_fields["sume_queue_key"].default
            assert settings.sume_api_key_file is None
            assert "real" not in str(pod)


def test_external_redis(helm: Helm, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "rediss://renders@redis.example.com:6380/2?health_check_interval=5"
    external = {"url": url, "existingSecret": "r", "existingSecretKey": "pw", "caSecret": "ca", "caSecretKey": "root"}
    objects = helm.objects({"redis": {"mode": "external", "external": external}})
    assert not [each for each in objects if each["metadata"]["name"].endswith("-redis")]
    assert not [each for each in objects if each["kind"] in ("Job", "Secret")]
    pod = named(objects, "Deployment", "-controller")["spec"]["template"]
    settings = accepted(pod, monkeypatch)
    ca = "/etc/sume-operator/redis-ca/ca.crt"
    assert settings.redis_url.get_secret_value() == f"{url}&ssl_ca_certs={ca}"
    mounts = {each["name"]: each["mountPath"] for each in pod["spec"]["containers"][0]["volumeMounts"]}
    volumes = {each["name"]: each.get("secret") for each in pod["spec"]["volumes"]}
    for name, secret, key, path in (
        ("redis-ca", "ca", "root", ca),
        ("redis-password", "r", "pw", str(settings.redis_password_file)),
    ):
        assert volumes[name]["secretName"] == secret
        assert volumes[name]["items"][0]["key"] == key
        assert f"{mounts[name]}/{volumes[name]['items'][0]['path']}" == path


def test_no_replicas_where_an_autoscaler_sets_them(helm: Helm) -> None:
    assert named(helm.objects({"poller": {"replicas": 4}}), "Deployment", "-poller")["spec"]["replicas"] == 4
    objects = helm.objects(values_of("autoscaling"))
    assert "replicas" not in named(objects, "Deployment", "-poller")["spec"]
    assert named(objects, "HorizontalPodAutoscaler")["spec"]["minReplicas"] == 2
    assert "HorizontalPodAutoscaler" not in kinds(helm.objects())


@pytest.mark.parametrize(
    ("poller", "is_made"),
    [
        ({}, False),
        ({"replicas": 0}, False),
        ({"replicas": 2}, True),
        ({"replicas": 2, "podDisruptionBudget": {"enabled": False}}, False),
        ({"replicas": 3, "autoscaling": {"enabled": True, "minReplicas": 1}}, False),
        ({"autoscaling": {"enabled": True, "minReplicas": 2}}, True),
    ],
)
def test_a_budget_of_disruptions_never_blocks_a_drain(helm: Helm, poller: dict[str, Any], is_made: bool) -> None:
    objects = helm.objects({"poller": poller})
    assert ("PodDisruptionBudget" in kinds(objects)) is is_made
    if is_made:
        assert named(objects, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


def test_rollouts(helm: Helm) -> None:
    """One controller; a poller is replaced before it goes; two Redis never stand behind one Service."""
    objects = helm.objects({"sandbox": {"enabled": True}})
    for name, kind in (("controller", "Recreate"), ("redis", "Recreate"), ("sandbox", "Recreate")):
        spec = named(objects, "Deployment", f"-{name}")["spec"]
        assert (spec["replicas"], spec["strategy"]["type"]) == (1, kind)
    assert named(objects, "Deployment", "-poller")["spec"]["strategy"]["type"] == "RollingUpdate"
    for name in ROLES:
        spec = named(objects, "Deployment", f"-{name}")["spec"]["template"]["spec"]
        assert spec["terminationGracePeriodSeconds"] == 45


def test_redis_rolls_with_its_configuration_and_with_nothing_else(helm: Helm) -> None:
    def template(**values: Any) -> Body:
        body: Body = named(helm.objects(values), "Deployment", "-redis")["spec"]["template"]
        return body

    assert template() == template(sume={"logLevel": "debug"}, commonAnnotations={"a": "b"})
    assert template() != template(redis={"internal": {"maxMemory": "100mb"}})
    assert template() != template(redis={"internal": {"extraConfig": ["timeout 0"]}})


def test_the_job_of_the_password_has_another_name_when_it_is_another(helm: Helm) -> None:
    """A Job cannot be changed; and its name must not change where it does not."""
    name = named(helm.objects(), "Job")["metadata"]["name"]
    assert named(helm.objects({"poller": {"replicas": 3}}), "Job")["metadata"]["name"] == name
    assert named(helm.objects({"image": {"tag": "other"}}), "Job")["metadata"]["name"] != name
    assert named(helm.objects({"nodeSelector": {"a": "b"}}), "Job")["metadata"]["name"] != name


@pytest.mark.parametrize("name", COMBINATIONS)
def test_rendered_twice_is_rendered_alike(helm: Helm, name: str) -> None:
    assert helm.text(values_of(name)) == helm.text(values_of(name))


def test_names_fit_whatever_the_release_is_called(helm: Helm) -> None:
    text = helm.objects(
        {"fullnameOverride": "a" * 60, "sandbox": {"enabled": True}, "metrics": {"dashboard": {"enabled": True}}}
    )
    for each in text:
        limit = 253 if each["kind"] in ("CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding") else 63
        assert len(each["metadata"]["name"]) <= limit


def test_common_labels_and_annotations_reach_every_object(helm: Helm) -> None:
    values = {**values_of("named"), "metrics": {"dashboard": {"enabled": True}}, "networkPolicy": {"enabled": True}}
    for each in helm.objects(values):
        assert each["metadata"]["labels"]["team"] == "x"
        if each["kind"] != "Pod":
            assert each["metadata"]["annotations"]["example.com/a"] == "y"
    for _component, pod in pods(helm.objects(values)):
        assert pod["metadata"]["labels"]["team"] == "x"


def test_security_contexts_can_be_emptied_for_openshift(helm: Helm) -> None:
    ids = {"runAsUser": None, "runAsGroup": None, "fsGroup": None}
    values = {"podSecurityContext": ids, "redis": {"internal": {"podSecurityContext": ids}}}
    for _component, pod in pods(helm.objects(values)):
        assert set(pod["spec"]["securityContext"]) == {"runAsNonRoot", "seccompProfile"}
