"""Clusters made by installers: the provisioner of one deployment, its work folder, and the two drivers of installers.

What is next, and what a host may be used for, `garboard.fleet` decides. `host_commands` is the end on the hosts: what
`garboard fleet host …` does there for a provisioner elsewhere.
"""
