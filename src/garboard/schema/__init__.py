"""What Kubernetes knows of its own documents: kinds, fields, merge keys, component flags and feature gates, per minor.

The data is generated from the Go types and programs of each release (`make schema`). Reading YAML is left to
`documents`, applying patches to `patches`.
"""

from garboard.schema.catalog import ComponentFlag, ComponentGate, ComponentOptions, KnownKind, Schema, load_schema
from garboard.schema.round_trip import round_trip
from garboard.schema.suggest import suggest
from garboard.schema.types import FieldType, StructType

__all__ = [
    "ComponentFlag",
    "ComponentGate",
    "ComponentOptions",
    "FieldType",
    "KnownKind",
    "Schema",
    "StructType",
    "load_schema",
    "round_trip",
    "suggest",
]
