"""The patches that kubeadm gets in a lab: the user's, and one of the lab's own for what the user leaves alone. Pure."""

from collections.abc import Mapping

# A kubelet that has just started waits up to one period before it first asks whether a container is ready. With the
# usual ten seconds that is most of the time until a new cluster has DNS.
LAB_PATCHES = {
    "corednsdeployment+strategic.yaml": b"""\
spec:
  template:
    spec:
      containers:
        - name: coredns
          readinessProbe:
            periodSeconds: 1
""",
}


def merge_patches(yours: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the patch files for kubeadm; a target that the user patches is the user's alone."""
    patched = {target_of(name) for name in yours}
    return {**{name: text for name, text in LAB_PATCHES.items() if target_of(name) not in patched}, **yours}


def target_of(name: str) -> str:
    """Return the target of a patch file named `target[suffix][+patchtype].extension`."""
    known = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "kubeletconfiguration",
             "corednsdeployment", "kubeproxydaemonset")  # fmt: skip
    return next((target for target in known if name.startswith(target)), name)
