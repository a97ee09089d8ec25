"""Labels, annotations, finalizers and names that tell objects of a fleet apart: Hive's, and a few of our own."""

from typing import Final

GROUP: Final = "hive.openshift.io"
API_VERSION: Final = f"{GROUP}/v1"

# Finalizers. An inventory entry has one of each pool that lists it: the group and the name of the pool.
DEPROVISION: Final = f"{GROUP}/deprovision"
POOL_CLUSTERS: Final = f"{GROUP}/clusters"
CLAIM: Final = f"{GROUP}/claim"
RUNS: Final = "fleet.garboard.dev/runs"  # of a ClusterProvision, while something may run for it

# Labels.
POOL_NAME_OF_NAMESPACE: Final = f"{GROUP}/cluster-pool-name"
POOL_NAMESPACE: Final = f"{GROUP}/clusterpool-namespace"
POOL_NAME: Final = f"{GROUP}/clusterpool-name"
DEPLOYMENT_NAME: Final = f"{GROUP}/cluster-deployment-name"
PROVISION_NAME: Final = f"{GROUP}/cluster-provision-name"
PLATFORM: Final = f"{GROUP}/cluster-platform"
JOB_TYPE: Final = f"{GROUP}/job-type"
SECRET_TYPE: Final = f"{GROUP}/secret-type"

# Annotations.
SPEC_HASH: Final = f"{GROUP}/cluster-pool-spec-hash"
REMOVE: Final = f"{GROUP}/remove-cluster-from-pool"
INSTALL_ONCE: Final = f"{GROUP}/try-install-once"
DELETE_AFTER: Final = f"{GROUP}/delete-after"
PROTECTED: Final = f"{GROUP}/protected-delete"
PAUSED: Final = f"{GROUP}/reconcile-pause"
# Our own: clusters that a pool has begun to create (their names), and whether it replaces stale ones.
CREATING: Final = "fleet.garboard.dev/creating"
REPLACE_STALE: Final = "fleet.garboard.dev/replace-stale"

POOL_ADMIN: Final = "hive-cluster-pool-admin"
POOL_ADMIN_BINDING: Final = "hive-cluster-pool-admin-binding"
CLAIM_OWNER: Final = "hive-claim-owner"


def customization_finalizer(pool: str) -> str:
    return f"{GROUP}/{pool}"
