"""`init`: the first control-plane node.

`tree` is the workflow, `context` what its phases plan from, `flags` the configuration that flags alone make; the other
modules hold the phases. Everything is planned before anything is done. join uses some of them, so nothing is imported
here: a worker does not load what renders a whole cluster.
"""
