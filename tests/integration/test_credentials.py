"""Which key a render is asked for with: Secrets of a real API server, files and variables; and no text with a key."""

import logging
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from controlplane import ControlPlane
from controlplane.cluster import as_user
from kube import Kube, eventually
from sume_operator.adapters.cluster import Cluster, load_configuration
from sume_operator.adapters.credentials import Credential, Credentials
from sume_operator.adapters.kubernetes_errors import ClusterUnavailableError
from sume_operator.core.job import NoCredentials
from sume_operator.core.render import Ref, Render, SecretRef

NAMESPACE = "credentials"
URL = "https://api.sume.com/v1"
KEY, OTHER = "sk-s3cret-first", "sk-s3cret-second"
PLAIN = Render(ref=Ref(NAMESPACE, "render", "uid"))


@pytest.fixture(autouse=True)
def _no_log_holds_a_key(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The HTTP libraries' own debug lines too: they are above debug in the operator, but nobody should rely on that."""
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.INFO, logger="kubernetes.client.rest")  # prints whole bodies at debug
    yield
    assert "s3cret" not in caplog.text


@pytest.fixture(scope="module")
def kube(cluster: ControlPlane) -> Kube:
    kube = Kube(cluster)
    kube.make_namespace(NAMESPACE)
    return kube


@pytest.fixture(scope="module")
def api(cluster: ControlPlane, kube: Kube) -> Cluster:
    return connected(cluster.kubeconfig)


def connected(kubeconfig: Path) -> Cluster:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("KUBECONFIG", str(kubeconfig))
        return Cluster(load_configuration(4), timeout_s=5)


def named(name: str, key: str = "apiKey") -> Render:
    return replace(PLAIN, credentials=SecretRef(name=name, key=key))


def found(credentials: Credentials, render: Render = PLAIN) -> Credential:
    result = credentials.resolve(render)
    assert isinstance(result, Credential), result
    assert result.key not in repr(result)
    assert result.key not in result.fingerprint
    return result


def refused(credentials: Credentials, render: Render = PLAIN) -> tuple[str, str]:
    result = credentials.resolve(render)
    assert isinstance(result, NoCredentials), result
    assert "s3cret" not in repr(result)
    return result.reason, result.message


# --- the operator's own key -----------------------------------------------------------------------


def test_no_key_at_all(api: Cluster) -> None:
    reason, message = refused(Credentials(api.read_secret, api_url=URL))
    assert reason == "CredentialsNotFound"
    assert "SUME_API_KEY" in message


@pytest.mark.parametrize("padding", ["", "\n", "\r\n", "  \t"])
def test_a_key_from_a_variable(api: Cluster, padding: str) -> None:
    credential = found(Credentials(api.read_secret, api_url=URL, default_key=f"{padding}{KEY}{padding}"))
    assert (credential.key, credential.source) == (KEY, "default")


def test_a_key_from_a_file_is_read_anew(api: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "key"
    credentials = Credentials(api.read_secret, api_url=URL, default_key_file=file)
    assert refused(credentials)[0] == "CredentialsNotFound"
    file.write_text(f"{KEY}\n", encoding="utf-8")
    first = found(credentials)
    file.write_text(f"{OTHER}\n", encoding="utf-8")
    second = found(credentials)
    assert (first.key, second.key) == (KEY, OTHER)
    assert first.fingerprint != second.fingerprint
    file.write_text("", encoding="utf-8")
    assert refused(credentials)[0] == "CredentialsInvalid"
    file.unlink()
    file.mkdir()
    assert refused(credentials)[0] == "CredentialsNotFound"


def test_which_namespaces_may_use_the_default(api: Cluster) -> None:
    credentials = Credentials(
        api.read_secret, api_url=URL, default_key=KEY, default_namespaces=frozenset({"team-a", "team-b"})
    )
    assert refused(credentials)[0] == "NamespaceNotAllowed"
    assert found(credentials, replace(PLAIN, ref=Ref("team-b", "render", "uid"))).key == KEY


def test_fingerprints_are_of_key_and_base(api: Cluster) -> None:
    def fingerprint(key: str, url: str) -> str:
        return found(Credentials(api.read_secret, api_url=url, default_key=key)).fingerprint

    assert fingerprint(KEY, URL) == fingerprint(f" {KEY} ", URL)
    assert len({fingerprint(KEY, URL), fingerprint(OTHER, URL), fingerprint(KEY, "https://elsewhere/v1")}) == 3


# --- Secrets --------------------------------------------------------------------------------------


def test_a_key_from_a_secret(api: Cluster, kube: Kube) -> None:
    kube.make_secret(NAMESPACE, "plain", {"apiKey": f"{KEY}\n", "spare": OTHER})
    credentials = Credentials(api.read_secret, api_url=URL, default_key="other", default_namespaces=frozenset())
    first = found(credentials, named("plain"))
    assert (first.key, first.source) == (KEY, f"{NAMESPACE}/plain")
    assert found(credentials, named("plain", "spare")).key == OTHER


def test_a_secret_that_is_missing_or_lacks_the_key(api: Cluster, kube: Kube) -> None:
    kube.make_secret(NAMESPACE, "wrong-name", {"apikey": KEY})
    credentials = Credentials(api.read_secret, api_url=URL, default_key=KEY, cache_s=0)
    reason, message = refused(credentials, named("later"))
    assert (reason, "Secret later does not exist" in message) == ("CredentialsNotFound", True)
    reason, message = refused(credentials, named("wrong-name"))
    assert (reason, "no key apiKey" in message) == ("CredentialsKeyMissing", True)
    kube.make_secret(NAMESPACE, "later", {"apiKey": KEY})
    assert found(credentials, named("later")).key == KEY


def test_a_replaced_key_is_picked_up_and_till_then_read_once(api: Cluster, kube: Kube) -> None:
    reads: list[str] = []

    def read(namespace: str, name: str, timeout_s: float) -> dict[str, bytes]:
        reads.append(name)
        return api.read_secret(namespace, name, timeout_s)

    kube.make_secret(NAMESPACE, "rotated", {"apiKey": KEY})
    lasting = Credentials(read, api_url=URL, cache_s=3600)
    brief = Credentials(api.read_secret, api_url=URL, cache_s=0.2)
    assert {found(each, named("rotated")).key for each in (lasting, brief)} == {KEY}
    assert {refused(lasting, named("absent"))[0] for _ in range(50)} == {"CredentialsNotFound"}
    kube.make_secret(NAMESPACE, "rotated", {"apiKey": OTHER})
    eventually(lambda: found(brief, named("rotated")).key == OTHER, within_s=3)
    assert {found(lasting, named("rotated")).key for _ in range(50)} == {KEY}
    assert reads == ["rotated", "absent"]


@pytest.mark.parametrize(
    "value",
    [
        "",
        " \n",
        "sk-s3cret\nInjected: header",
        "sk-s3cret\r\n\r\nGET / HTTP/1.1",
        "sk-s3cret\x00",
        "sk-s3cret with blanks",
        "sk-s3cret-é",
        "sk-s3cret-\u200b",
        "\ufeffsk-s3cret",
        "sk-s3cret\x7f",
    ],
    ids=range(10),
)
def test_a_key_that_cannot_be_one(api: Cluster, kube: Kube, tmp_path: Path, value: str) -> None:
    kube.make_secret(NAMESPACE, "broken", {"apiKey": value})
    reason, message = refused(Credentials(api.read_secret, api_url=URL), named("broken"))
    assert reason == "CredentialsInvalid"
    assert "credentials/broken" in message
    file = tmp_path / "key"
    file.write_bytes(value.encode())
    assert refused(Credentials(api.read_secret, api_url=URL, default_key_file=file))[0] == "CredentialsInvalid"
    if value:
        reason, message = refused(Credentials(api.read_secret, api_url=URL, default_key=value))
        assert reason == "CredentialsInvalid"
        assert "default" in message


def test_a_variable_that_is_no_text(api: Cluster) -> None:
    """Bytes that are no UTF-8 come out of the environment as lone surrogates."""
    value = b"sk-s3cret\xff".decode("utf-8", "surrogateescape")
    assert refused(Credentials(api.read_secret, api_url=URL, default_key=value))[0] == "CredentialsInvalid"


def test_secrets_that_may_not_be_read(cluster: ControlPlane, kube: Kube, tmp_path: Path) -> None:
    kube.make_secret(NAMESPACE, "closed", {"apiKey": KEY})
    cluster.kubectl("create", "serviceaccount", "nobody", "-n", NAMESPACE)
    token = cluster.kubectl("create", "token", "nobody", "-n", NAMESPACE).stdout.strip()
    api = connected(as_user(cluster.kubeconfig, tmp_path / "kubeconfig", token))
    credentials = Credentials(api.read_secret, api_url=URL, default_key=KEY)
    reason, message = refused(credentials, named("closed"))
    assert (reason, "may not read Secret closed" in message) == ("CredentialsNotFound", True)
    role = ["--verb=get", "--resource=secrets", "-n", NAMESPACE]
    cluster.kubectl("create", "role", "reader", *role)
    cluster.kubectl(
        "create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={NAMESPACE}:nobody", *role[2:]
    )
    eventually(lambda: isinstance(credentials.resolve(named("closed")), Credential), within_s=5)


def test_a_secret_that_cannot_be_asked_for_is_not_a_missing_one(
    cluster: ControlPlane, api: Cluster, kube: Kube, tmp_path: Path
) -> None:
    kube.make_secret(NAMESPACE, "known", {"apiKey": KEY})
    kubeconfig = tmp_path / "kubeconfig"
    port = cluster.url.rpartition(":")[2]
    kubeconfig.write_text(cluster.kubeconfig.read_text(encoding="utf-8").replace(f":{port}", ":1"), encoding="utf-8")
    gone = connected(kubeconfig)
    credentials = Credentials(gone.read_secret, api_url=URL, default_key=KEY)
    with pytest.raises(ClusterUnavailableError) as raised:
        credentials.resolve(named("known"))
    assert "s3cret" not in "".join(traceback.format_exception(raised.value))
