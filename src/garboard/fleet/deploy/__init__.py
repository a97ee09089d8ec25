"""What a cluster needs so that the fleet's controllers run in it: definitions, rights, and a Deployment.

Everything here is rendered from values and planned; `garboard.node.fleet` carries the plan out.
"""

from garboard.fleet.deploy.objects import ControllerDeployment, controller_objects
from garboard.fleet.deploy.plan import (
    DefinitionsView,
    ForeignDefinitions,
    KindsServed,
    foreign_definitions,
    plan_deployment,
    refuse_foreign_definitions,
)

__all__ = [
    "ControllerDeployment",
    "DefinitionsView",
    "ForeignDefinitions",
    "KindsServed",
    "controller_objects",
    "foreign_definitions",
    "plan_deployment",
    "refuse_foreign_definitions",
]
