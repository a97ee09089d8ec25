"""The clusters of the scenarios, which benchmarks plan for as well."""

from tools.harness.cluster_snapshots import ENDPOINT, SOCKET, MadeUpCluster, f1, f2, f3, f4

__all__ = ["ENDPOINT", "SOCKET", "MadeUpCluster", "f1", "f2", "f3", "f4"]
