"""Snapshots of labs: a cluster that was stopped cleanly, kept as files, and started again as often as wanted.

`store` knows which snapshots there are and whether each can be used, `taking` makes one, `starting` makes a lab of one.
"""
