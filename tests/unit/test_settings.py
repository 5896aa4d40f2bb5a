"""Settings: what each variable takes, and what is said of one that is wrong."""

from pathlib import Path
from typing import Any

import pytest

from sume_operator.settings import Settings, SettingsError, load_settings

SECRET = "sk_live_MARKER"


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


def load(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Settings:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return load_settings()


def test_without_any_variable_the_defaults_hold() -> None:
    settings = load_settings()
    assert (settings.sume_api_key, settings.sume_api_url) == (None, "https://api.sume.com/v1")
    assert (settings.sume_poll_seconds, settings.sume_poll_min_seconds, settings.sume_poll_max_seconds) == (15, 2, 300)
    assert (settings.sume_error_seconds, settings.sume_lease_seconds, settings.sume_sweep_seconds) == (30, 45, 60)
    assert (settings.sume_concurrency, settings.sume_queue_key, settings.sume_http_port) == (16, "sume:polls", 8080)
    assert (settings.sume_reads_per_minute, settings.sume_submissions_per_minute) == (120, 10)
    assert (settings.sume_max_active_jobs, settings.sume_status_refresh_seconds) == (24, 0)
    assert (settings.sume_watch_namespaces, settings.default_key_namespaces) == (frozenset(), None)
    assert (settings.sume_log_format, settings.sume_log_level, settings.sume_auth_mode) == ("json", "info", "bearer")


GOOD: list[tuple[str, str, Any]] = [
    ("SUME_API_URL", "https://api.open.sume.com", "https://api.open.sume.com/v1"),
    ("SUME_API_URL", " https://api.open.sume.com/v1/ ", "https://api.open.sume.com/v1"),
    ("SUME_API_URL", "http://127.0.0.1:8081", "http://127.0.0.1:8081/v1"),
    ("SUME_AUTH_MODE", "X-API-Key", "x-api-key"),
    ("SUME_POLL_SECONDS", "0.5", 0.5),
    ("SUME_SUBMISSIONS_ENABLED", "false", False),
    ("SUME_WATCH_NAMESPACES", " a, b ,,c", frozenset({"a", "b", "c"})),
    ("SUME_DEFAULT_KEY_NAMESPACES", "a,b", frozenset({"a", "b"})),
    ("SUME_API_KEY_FILE", "/run/key", Path("/run/key")),
    ("SUME_LOG_LEVEL", "DEBUG", "debug"),
    ("SUME_LOG_FORMAT", " Text ", "text"),
    ("SUME_HTTP_PORT", "0", 0),
    ("SUME_STATUS_REFRESH_SECONDS", "0", 0.0),
    ("SUME_STATUS_REFRESH_SECONDS", "600", 600.0),
    ("SUME_READS_PER_DAY", "0", 0),
    ("SUME_LEASE_SECONDS", "33", 33.0),
    ("SUME_POLL_SECONDS", "", 15.0),
]


@pytest.mark.parametrize(("name", "text", "value"), GOOD, ids=[f"{row[0]}={row[1]}" for row in GOOD])
def test_good_values(monkeypatch: pytest.MonkeyPatch, name: str, text: str, value: Any) -> None:
    assert getattr(load(monkeypatch, **{name: text}), name.lower()) == value


NUMBERS = [name.upper() for name in Settings.model_fields if "_seconds" in name]
COUNTS = [name.upper() for name in Settings.model_fields if "_per_" in name] + ["SUME_MAX_ACTIVE_JOBS"]
BAD: list[tuple[str, str]] = [
    *((name, text) for name in NUMBERS for text in ("-1", "nan", "inf", "soon")),
    *((name, "0") for name in NUMBERS if "REFRESH" not in name),
    *((name, text) for name in COUNTS for text in ("-1", "1.5", "many")),
    *(("SUME_CONCURRENCY", text) for text in ("0", "513", "x")),
    *(("SUME_HTTP_PORT", text) for text in ("-1", "65536", "http")),
    *(("SUME_API_URL", text) for text in ("api.sume.com", "ftp://x/v1", "https://", "http://[", "https://x/?a=b")),
    ("SUME_API_URL", f"https://user:{SECRET}@api.sume.com"),
    ("SUME_API_URL", "https://x/" + "y" * 600),
    *(("REDIS_URL", text) for text in ("localhost:6379", "http://x", "redis-sentinel://x", "redis://[")),
    ("REDIS_URL", f"rediss//:{SECRET}@x:6379"),
    ("SUME_AUTH_MODE", "basic"),
    ("SUME_LOG_FORMAT", "xml"),
    ("SUME_LOG_LEVEL", "loud"),
    ("SUME_SUBMISSIONS_ENABLED", "perhaps"),
    ("SUME_LEASE_SECONDS", "32.9"),
]


@pytest.mark.parametrize(("name", "text"), BAD, ids=[f"{row[0]}={row[1][:24]}" for row in BAD])
def test_a_bad_value_is_one_line_that_names_its_variable(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    with pytest.raises(SettingsError) as error:
        load(monkeypatch, **{name: text})
    lines = str(error.value).splitlines()
    assert all(line.startswith(f"{name}: ") for line in lines if "SUME_LEASE_SECONDS" not in line)
    assert any(line.startswith(f"{name}: ") for line in lines)
    assert len(lines) <= (2 if name == "SUME_REQUEST_TIMEOUT_SECONDS" else 1)
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None


def test_each_of_several_bad_variables_has_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError) as error:
        load(monkeypatch, SUME_POLL_SECONDS="x", REDIS_URL="x", SUME_LOG_LEVEL="x", SUME_API_KEY=SECRET)
    assert [line.split(":")[0] for line in str(error.value).splitlines()] == [
        "REDIS_URL",
        "SUME_POLL_SECONDS",
        "SUME_LOG_LEVEL",
    ]
    assert SECRET not in str(error.value)


def test_a_floor_above_the_ceiling_names_both(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"SUME_POLL_MIN_SECONDS .*SUME_POLL_MAX_SECONDS"):
        load(monkeypatch, SUME_POLL_MIN_SECONDS="10", SUME_POLL_MAX_SECONDS="5")


def test_a_lease_outlasts_a_call_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"SUME_LEASE_SECONDS: wants at least .* = 63"):
        load(monkeypatch, SUME_REQUEST_TIMEOUT_SECONDS="60")
    assert load(monkeypatch, SUME_LEASE_SECONDS="63").sume_lease_seconds == 63


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"redis://:{SECRET}@cache:6379/0", "redis://cache:6379/0"),
        (f"rediss://user:{SECRET}@cache:6379/1?password={SECRET}", "rediss://cache:6379/1"),
        ("unix:///run/redis.sock", "unix:///run/redis.sock"),
        (f"redis://cache/0?password={SECRET}", "redis://cache/0"),
    ],
    ids=["password", "user, password and query", "socket", "query"],
)
def test_what_is_shown_at_start_holds_no_secret(monkeypatch: pytest.MonkeyPatch, url: str, shown: str) -> None:
    settings = load(monkeypatch, REDIS_URL=url, SUME_API_KEY=SECRET)
    assert settings.shown()["redis_url"] == shown
    assert settings.shown()["sume_api_key"] == "set"
    for text in (str(settings.shown()), repr(settings), str(settings)):
        assert SECRET not in text
    assert settings.sume_api_key
    assert settings.sume_api_key.get_secret_value() == SECRET
    assert settings.redis_url.get_secret_value() == url


def test_no_key_is_shown_as_none() -> None:
    assert load_settings().shown()["sume_api_key"] is None
