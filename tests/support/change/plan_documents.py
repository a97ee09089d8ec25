"""Documents of plans as `change plan -o json` prints them, for the page that is made of one."""

from collections.abc import Mapping

from garboard.documents import Json

PATH = "/etc/kubernetes/manifests/kube-apiserver.yaml"
DIFF = """\
--- /etc/kubernetes/manifests/kube-apiserver.yaml
+++ /etc/kubernetes/manifests/kube-apiserver.yaml
@@ -20,7 +20,7 @@
     - --kubelet-client-key=/etc/kubernetes/pki/apiserver-kubelet-client.key
-    - --event-ttl=1h
+    - --profiling=false
     - --secure-port=6443
"""
MAP_DIFF = """\
--- kubeadm-config
+++ kubeadm-config
@@ -1,3 +1,6 @@
 apiServer:
+  extraArgs:
+  - name: profiling
+    value: "false"
"""


def node(name: str, *, assumed: bool = True) -> Json:
    return {
        "node": name,
        "steps": [
            {
                "phase": "control-plane/apiserver",
                "title": f"replace the static pod kube-apiserver on {name}",
                "cause": "apiServer.extraArgs[profiling] changed",
                "files": [{"path": PATH, "diff": DIFF, "assumed": assumed}],
                "restarts": ["kube-apiserver"],
            },
            {
                "phase": "wait",
                "title": "wait until the API server is well",
                "cause": "the next node begins only then; etcd keeps 3 of 3 members",
                "files": [],
                "restarts": [],
            },
        ],
    }


def plan(**changes: Json) -> Mapping[str, Json]:
    """Return the plan of a flag for three control planes, with advice about another attribute."""
    document: dict[str, Json] = {
        "apiVersion": "change.garboard.dev/v1alpha1",
        "kind": "ChangePlan",
        "verdict": "advice",
        "digest": "sha256:" + "ab" * 32,
        "attributes": [
            {
                "path": "apiServer.extraArgs[profiling]", "from": None, "to": "false", "verdict": "allowed", "code": "",
                "reason": "the API servers restart, one after the other", "route": "",
            },
            {
                "path": "KubeletConfiguration:maxPods", "from": 110, "to": 20, "verdict": "advice",
                "code": "shrinks-capacity", "reason": "node w1 runs 35 pods, 15 more than fit",
                "route": "kubectl drain w1 --ignore-daemonsets\nkubectl uncordon w1",
            },
        ],
        "nodes": [node("cp1", assumed=False), node("cp2"), node("cp3")],
        "objects": [
            {
                "kind": "ConfigMap", "namespace": "kube-system", "name": "kubeadm-config",
                "cause": "later joins and upgrades read it", "diff": MAP_DIFF, "after": "cp1",
            }
        ],
        "followUps": ["Tell whoever profiles the API servers."],
    }  # fmt: skip
    return {**document, **changes}
