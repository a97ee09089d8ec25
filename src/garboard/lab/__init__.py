"""The lab: a real multi-node Kubernetes cluster on one machine, each node a set of Linux namespaces.

It decides what a node is made of and drives the real programs; the machine itself (processes, files, mounts) is reached
through the Protocols of `garboard.lab.machine`, which `garboard.host` satisfies.
"""
