"""`init`: the first control-plane node.

`tree` is the workflow, `context` what its phases plan from, `flags` the configuration that flags alone make; the other
modules hold the phases. Everything is planned before anything is done.
"""

from garboard.phases.init.tree import INIT

__all__ = ["INIT"]
