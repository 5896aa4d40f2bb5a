"""The metrics of the sorted set, brought up to date when they are asked for."""

from sume_operator.adapters.due_queue import DueQueue
from sume_operator.adapters.redis_connection import RedisUnavailableError
from sume_operator.metrics import SharedMetrics


def measure_queue(queue: DueQueue, metrics: SharedMetrics) -> None:
    """Bring the metrics of the sorted set up to date; they keep their last values while Redis does not answer."""
    try:
        measures = queue.measure()
    except RedisUnavailableError:
        return
    metrics.queue_size.set(measures.size)
    metrics.queue_due.set(measures.due)
    metrics.queue_lag_seconds.set(measures.lag_s)
