"""One simulated Sume: all of its parts, put together and put back to the start."""

from sume_sandbox.budget import ReadBudget
from sume_sandbox.clock import Clock
from sume_sandbox.config import SandboxConfig
from sume_sandbox.contract import Contract
from sume_sandbox.faults import Faults
from sume_sandbox.keys import Keys
from sume_sandbox.links import Links
from sume_sandbox.media_log import MediaLog
from sume_sandbox.observations import Observations
from sume_sandbox.store import JobStore


class Sandbox:
    """The parts that the routes work on."""

    def __init__(self, config: SandboxConfig) -> None:
        self.config = config
        self.clock = Clock()
        self.reset()

    def reset(self) -> None:
        """Forget all jobs, faults, counts and keys but those it was configured with."""
        self.keys = Keys(self.config.api_keys)
        self.faults = Faults()
        self.observations = Observations(self.clock)
        self.store = JobStore(self.config)
        self.links = Links(self.config.link_life_s)
        self.media_log = MediaLog()
        self.contract = Contract(
            config=self.config,
            clock=self.clock,
            store=self.store,
            budget=ReadBudget(self.config.reads_per_minute),
            links=self.links,
        )
