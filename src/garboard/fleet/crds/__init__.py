"""The CustomResourceDefinitions of hive.openshift.io/v1, so that any API server can hold Hive's objects.

Specs come from the documents that `garboard fleet render` reads, so that both know the same fields; rules in CEL refuse
what it would refuse, as far as CEL can say it. Applying them is left to `garboard.node.fleet`.
"""

from garboard.fleet.crds.definitions import OWNER, OWNER_LABEL, custom_resource_definitions

__all__ = ["OWNER", "OWNER_LABEL", "custom_resource_definitions"]
