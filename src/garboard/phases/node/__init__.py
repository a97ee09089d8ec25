"""One node: the context that every workflow plans from, and the planners that several workflows share.

Which planner runs when is left to the trees of `init`, `join` and `reset`. Nothing is imported here: a worker joins
without loading what renders and issues a control plane.
"""
