"""Bytes to JSON trees and back, exactly as Kubernetes reads and writes YAML, with positions on demand.

What the trees mean is left to `config`, `patches` and `schema`.
"""

from garboard.documents.json_value import Json

__all__ = ["Json"]
