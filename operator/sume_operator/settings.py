"""The settings, read once from environment variables. Errors name the variable and what it wants."""

from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

SPARE_LEASE_S: Final = 3.0
MAX_API_URL_CHARS: Final = 512


class SettingsError(ValueError):
    """One line per variable: its name, and what it wants."""


def _api_url(value: str) -> str:
    parts = urlsplit(value.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("wants an http or https URL, such as https://api.sume.com/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("wants a URL without user name, query or fragment; the key belongs into SUME_API_KEY")
    base = value.strip().rstrip("/")
    base = base if base.endswith("/v1") else f"{base}/v1"
    if len(base) > MAX_API_URL_CHARS:
        raise ValueError(f"wants at most {MAX_API_URL_CHARS} characters, for status.apiURL holds no more")
    return base


def _names(value: Any) -> Any:
    return frozenset(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value


Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False, le=86_400)]
Count = Annotated[int, Field(ge=0)]
Names = Annotated[frozenset[str], NoDecode]


class Settings(BaseSettings):
    """Every field is the variable of the same name in upper case; seconds may be fractions."""

    model_config = SettingsConfigDict(extra="ignore", frozen=True, env_ignore_empty=True, hide_input_in_errors=True)

    sume_api_key: SecretStr | None = None
    sume_api_key_file: Path | None = None
    sume_default_key_namespaces: Names = frozenset({"*"})
    sume_submissions_enabled: bool = True
    sume_api_url: Annotated[str, AfterValidator(_api_url)] = "https://api.sume.com/v1"
    sume_auth_mode: Literal["bearer", "x-api-key"] = "bearer"
    redis_url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    redis_password_file: Path | None = None
    sume_queue_key: Annotated[str, Field(min_length=1)] = "sume:polls"
    sume_watch_namespaces: Names = frozenset()
    sume_concurrency: Annotated[int, Field(ge=1, le=512)] = 16
    sume_poll_seconds: Seconds = 15.0
    sume_poll_min_seconds: Seconds = 2.0
    sume_poll_max_seconds: Seconds = 300.0
    sume_error_seconds: Seconds = 30.0
    sume_request_timeout_seconds: Seconds = 30.0
    sume_kubernetes_timeout_seconds: Seconds = 15.0
    sume_submit_timeout_seconds: Seconds = 90.0
    sume_lease_seconds: Seconds = 45.0
    sume_sweep_seconds: Seconds = 60.0
    sume_status_refresh_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    sume_reads_per_minute: Count = 120
    sume_reads_per_day: Count = 0
    sume_submissions_per_minute: Count = 10
    sume_submissions_per_day: Count = 0
    sume_max_active_jobs: Count = 24
    sume_log_format: Literal["json", "text"] = "json"
    sume_log_level: Literal["debug", "info", "warning", "error"] = "info"
    sume_http_port: Annotated[int, Field(ge=0, le=65_535)] = 8080

    _split = field_validator("sume_default_key_namespaces", "sume_watch_namespaces", mode="before")(_names)

    @field_validator("sume_log_level", "sume_log_format", "sume_auth_mode", mode="before")
    @classmethod
    def _lower(cls, value: Any) -> Any:
        return value.strip().lower() if isinstance(value, str) else value

    @field_validator("redis_url")
    @classmethod
    def _redis_url(cls, value: SecretStr) -> SecretStr:
        if urlsplit(value.get_secret_value()).scheme not in ("redis", "rediss", "unix"):
            raise ValueError("wants a redis://, rediss:// or unix:// URL")
        return value

    @field_validator("sume_lease_seconds")
    @classmethod
    def _outlasts_a_call(cls, value: float, info: ValidationInfo) -> float:
        call_s = info.data.get("sume_request_timeout_seconds")
        if call_s is not None and value < call_s + SPARE_LEASE_S:
            raise ValueError(
                f"wants at least SUME_REQUEST_TIMEOUT_SECONDS + {SPARE_LEASE_S:g} = {call_s + SPARE_LEASE_S:g}: "
                "a turn must not outlive its lease"
            )
        return value

    @model_validator(mode="after")
    def _floor_below_ceiling(self) -> "Settings":
        if self.sume_poll_min_seconds > self.sume_poll_max_seconds:
            raise ValueError("SUME_POLL_MIN_SECONDS wants to be at most SUME_POLL_MAX_SECONDS")
        return self

    @property
    def default_key_namespaces(self) -> frozenset[str] | None:
        """Namespaces that may use the operator's own key; None: all."""
        return None if "*" in self.sume_default_key_namespaces else self.sume_default_key_namespaces

    def shown(self) -> dict[str, Any]:
        """What the process runs with, for its start line; secrets hidden."""
        shown = self.model_dump(mode="json", exclude={"sume_api_key", "redis_url"})
        url = urlsplit(self.redis_url.get_secret_value())
        host = url.netloc.rpartition("@")[2]
        return shown | {
            "sume_api_key": "set" if self.sume_api_key else None,
            "redis_url": f"{url.scheme}://{host}{url.path}",
        }


def load_settings() -> Settings:
    """The settings of this process; SettingsError lists every variable that is wrong."""
    try:
        return Settings()
    except ValidationError as error:
        lines = [_line(problem) for problem in error.errors(include_input=False, include_url=False)]
        raise SettingsError("\n".join(lines)) from None


def _line(problem: Any) -> str:
    name = str(problem["loc"][0]).upper() if problem["loc"] else ""
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"{name}: {message}" if name else message
