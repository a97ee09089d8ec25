"""The controllers of a fleet at work: a cache of what they watch, decisions about one key at a time, and writes.

What is decided is `garboard.fleet.controllers`; how an API server is asked is `garboard.kube.aio`.
"""
