"""Whether the CRD that the API server serves is the one this version writes to."""

from sume_operator.adapters.cluster import Cluster
from sume_operator.adapters.kubernetes_errors import ClusterError
from sume_operator.core.status import missing_fields


class CRDCheck:
    """Whether the API server serves SumeRender with every field this version writes."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._problem: str | None = "not looked at yet"

    def problem(self) -> str | None:
        """What was wrong at the last look; None: nothing."""
        return self._problem

    def look(self) -> str | None:
        """Look now."""
        try:
            schema = self._cluster.status_schema()
        except ClusterError as error:
            self._problem = f"unknown, the API server does not tell: {error}"
            return self._problem
        if schema is None:
            self._problem = "the CRD sumerenders.render.sume.com is not installed: kubectl apply -f crds/"
        else:
            missing = sorted(missing_fields(schema))
            self._problem = (
                f"CRD too old: its status lacks {', '.join(missing)}. Apply the crds/ of this version."
                if missing
                else None
            )
        return self._problem
