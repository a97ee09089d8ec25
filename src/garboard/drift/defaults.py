"""What Kubernetes fills in where a document leaves a field out: to write it down changes nothing.

Of the types that kubeadm renders the fields whose default depends on nothing but the object itself.
"""

from collections.abc import Mapping

from garboard.documents import Json

_WORKLOAD: Mapping[str, Json] = {"revisionHistoryLimit": 10}
_TWENTY_FIVE_PERCENT: Mapping[str, Json] = {"maxSurge": "25%", "maxUnavailable": "25%"}
_DEFAULTS: Mapping[str, Mapping[str, Json]] = {
    "core/v1.PodSpec": {
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    },
    "core/v1.Container": {
        "imagePullPolicy": "IfNotPresent",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    },
    "core/v1.Probe": {"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1},
    "core/v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "core/v1.ContainerPort": {"protocol": "TCP"},
    "core/v1.VolumeMount": {"recursiveReadOnly": "Disabled"},
    "core/v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "core/v1.ConfigMapVolumeSource": {"defaultMode": 420},
    "core/v1.SecretVolumeSource": {"defaultMode": 420},
    "core/v1.ProjectedVolumeSource": {"defaultMode": 420},
    "core/v1.DownwardAPIVolumeSource": {"defaultMode": 420},
    "core/v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "core/v1.ServiceSpec": {
        "internalTrafficPolicy": "Cluster",
        "ipFamilyPolicy": "SingleStack",
        "sessionAffinity": "None",
        "type": "ClusterIP",
    },
    "core/v1.ServicePort": {"protocol": "TCP"},
    "rbac/v1.Subject": {"apiGroup": "rbac.authorization.k8s.io"},
    "apps/v1.DeploymentSpec": {**_WORKLOAD, "progressDeadlineSeconds": 600, "replicas": 1},
    "apps/v1.DeploymentStrategy": {"type": "RollingUpdate"},
    "apps/v1.RollingUpdateDeployment": _TWENTY_FIVE_PERCENT,
    "apps/v1.DaemonSetSpec": _WORKLOAD,
    "apps/v1.DaemonSetUpdateStrategy": {"type": "RollingUpdate"},
    "apps/v1.RollingUpdateDaemonSet": {"maxSurge": 0, "maxUnavailable": 1},
    "config/v1beta1.KubeletConfiguration": {
        "address": "0.0.0.0",  # noqa: S104 - what the kubelet does if it is not told otherwise
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": True,
        "configMapAndSecretChangeDetectionStrategy": "Watch",
        "containerLogMaxFiles": 5,
        "containerLogMaxSize": "10Mi",
        "containerLogMaxWorkers": 1,
        "contentType": "application/vnd.kubernetes.protobuf",
        "cpuCFSQuota": True,
        "cpuManagerPolicy": "none",
        "enableControllerAttachDetach": True,
        "enableDebuggingHandlers": True,
        "enableServer": True,
        "eventBurst": 100,
        "eventRecordQPS": 50,
        "failSwapOn": True,
        "hairpinMode": "promiscuous-bridge",
        "imageGCHighThresholdPercent": 85,
        "imageGCLowThresholdPercent": 80,
        "kubeAPIBurst": 100,
        "kubeAPIQPS": 50,
        "makeIPTablesUtilChains": True,
        "maxOpenFiles": 1000000,
        "maxPods": 110,
        "memoryManagerPolicy": "None",
        "nodeLeaseDurationSeconds": 40,
        "nodeStatusMaxImages": 50,
        "oomScoreAdj": -999,
        "podPidsLimit": -1,
        "port": 10250,
        "registerNode": True,
        "registryBurst": 10,
        "registryPullQPS": 5,
        "serializeImagePulls": True,
        "topologyManagerPolicy": "none",
        "topologyManagerScope": "container",
    },
    "config/v1beta1.KubeletAnonymousAuthentication": {"enabled": False},
    "config/v1beta1.KubeletWebhookAuthentication": {"enabled": True},
    "config/v1beta1.KubeletAuthorization": {"mode": "Webhook"},
}
# The default of a field is another one of the same object.
_TWINS: Mapping[tuple[str, str], str] = {
    ("core/v1.ContainerPort", "hostPort"): "containerPort",  # with the network of the host
    ("core/v1.PodSpec", "serviceAccount"): "serviceAccountName",
    ("core/v1.ServicePort", "targetPort"): "port",
}


def default_of(type_name: str, field: str, members: Mapping[str, Json]) -> Json:
    """Return what stands for a field that is left out; None if that is not known or depends on more."""
    twin = _TWINS.get((type_name, field))
    if twin is not None:
        return members.get(twin)
    return _DEFAULTS.get(type_name, {}).get(field)
