"""Running a workflow on this node: runs under a lock, transactions, and the interpreters of actions with their edges.

It never prints: progress goes to the caller's `Reporter`. What is to be done is planned by `phases`.
"""
