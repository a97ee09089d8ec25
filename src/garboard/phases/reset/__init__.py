"""`reset`: what init and join made on this machine goes; its member leaves etcd first.

A reset cannot be undone. It can be resumed, or simply run again: it plans from what is left.
"""

from garboard.phases.reset.tree import RESET

__all__ = ["RESET"]
