"""The dashboard of a fleet at work: it watches the objects, and serves them to those who may see them.

What is shown, and how, is decided in `garboard.fleet.dashboard`.
"""
