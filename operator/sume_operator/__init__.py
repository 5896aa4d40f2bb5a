"""Kubernetes operator that follows AI video renders at Sume. Orientation: ../README.md."""

__version__ = "0.1.0"
