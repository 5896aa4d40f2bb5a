"""What one sandbox is started with. Values only; reading them from the command line is `command`'s job."""

from dataclasses import dataclass, field

from sume_sandbox.outputs import MEDIA_BASE


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxConfig:
    """Every knob of a sandbox; the defaults make a demo that shows all states within half a minute."""

    host: str = "0.0.0.0"  # noqa: S104  # its main home is a container, where loopback could not be reached
    port: int = 8081  # 0: any free one; the start line says which
    queue_s: float = 3.0  # a submitted job is queued at least this long
    process_s: float = 20.0  # from the start of processing to the end
    failing_share: float = 0.0  # of all jobs, chosen by job id: 0 none, 1 all
    running_slots: int = 4  # per workspace, as on Sume's plan Pro
    queued_slots: int = 20  # per workspace, as on Sume's plan Pro
    reads_per_minute: int = 0  # per workspace; 0: no limit. Sume documents 120
    next_poll_s: float = 5.0  # the delay that status answers suggest; 0: they suggest none
    cancel_running: bool = False  # sources differ on whether Sume cancels a job that runs; most say it refuses
    seed: int = 0  # other seeds: other job ids for the same Idempotency-Key, other jobs that fail
    api_keys: frozenset[str] = field(default=frozenset(), repr=False)  # empty: any key is good, but there must be one
    log_requests: bool = False
    media_url: str = MEDIA_BASE  # where the addresses of outputs point; the sandbox serves them under /artifacts
    media_bytes: int = 64 * 1024  # the size of each file
    link_life_s: float = 3600.0  # of a signed address
    tls_port: int = 8443  # the same over TLS, where there is a certificate: outputs have https addresses only
    tls_cert: str = ""  # PEM files
    tls_key: str = ""
