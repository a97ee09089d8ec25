"""`join`: another node of a cluster.

`tree` is the workflow, `context` what its phases plan from, `flags` the configuration that flags alone make. What a
phase needs of the cluster nobody reads yet, so each of them says what is missing.
"""

from garboard.phases.join.tree import JOIN

__all__ = ["JOIN"]
