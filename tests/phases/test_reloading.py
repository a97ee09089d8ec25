"""Which static pods restart for which renewed files: those that read one only when they start."""

from garboard.documents import write_yaml
from garboard.phases.reloading import restarted_pods, uses_of
from garboard.phases.static_pods import swapped

PKI = "/etc/kubernetes/pki"
COMMANDS = {
    "etcd": [f"--cert-file={PKI}/etcd/server.crt", f"--peer-cert-file={PKI}/etcd/peer.crt"],
    "kube-apiserver": [
        f"--etcd-certfile={PKI}/apiserver-etcd-client.crt",
        f"--tls-cert-file={PKI}/apiserver.crt",
        f"--tls-private-key-file={PKI}/apiserver.key",
    ],
    "kube-controller-manager": [
        "--authentication-kubeconfig=/etc/kubernetes/controller-manager.conf",
        "--kubeconfig=/etc/kubernetes/controller-manager.conf",
    ],
    "kube-scheduler": ["--kubeconfig=/etc/kubernetes/scheduler.conf"],
}


def manifests(**more: str) -> dict[str, bytes]:
    extra = {name.replace("_", "-"): flag for name, flag in more.items()}
    return {
        name: write_yaml(
            {"spec": {"containers": [{"command": [name, *flags, *([extra[name]] if name in extra else [])]}]}}
        ).encode()
        for name, flags in COMMANDS.items()
    }


def restarted(*paths: str, **more: str) -> list[str]:
    found = manifests(**more)
    return [pod.component for pod in swapped(restarted_pods(uses_of(paths, found), found))]


def test_serving_and_client_certificates_are_read_again_without_a_restart() -> None:
    paths = [f"{PKI}/{name}" for name in ("apiserver.crt", "apiserver.key", "etcd/server.crt", "etcd/peer.crt")]
    assert restarted(*paths, f"{PKI}/apiserver-etcd-client.crt", "/etc/kubernetes/admin.conf") == []
    told = [str(use) for use in uses_of([f"{PKI}/apiserver.crt", f"{PKI}/etcd/peer.crt"], manifests())]
    assert told == [
        f"kube-apiserver reads {PKI}/apiserver.crt again by itself, within a minute of its change (--tls-cert-file)",
        f"etcd reads {PKI}/etcd/peer.crt again by itself, for every new connection (--peer-cert-file)",
    ]


def test_kubeconfigs_are_read_once_and_the_restart_says_so() -> None:
    assert restarted("/etc/kubernetes/scheduler.conf") == ["kube-scheduler"]
    path = "/etc/kubernetes/controller-manager.conf"
    assert restarted(path) == ["kube-controller-manager"]
    found = manifests()
    (pod,) = swapped(restarted_pods(uses_of([path], found), found))
    assert (
        pod.restart_cause == f"kube-controller-manager reads {path} only when it starts (--authentication-kubeconfig)"
    )
    assert not pod.is_changed


def test_file_of_a_flag_that_nobody_knows_is_taken_to_be_read_once() -> None:
    assert restarted(f"{PKI}/apiserver.crt", kube_scheduler=f"--tls-cert-file={PKI}/apiserver.crt") == []
    assert restarted(f"{PKI}/apiserver.crt", kube_scheduler=f"--new={PKI}/apiserver.crt") == ["kube-scheduler"]
    both = restarted(f"{PKI}/etcd/server.crt", etcd=f"--new={PKI}/etcd/server.crt")
    assert both == ["kube-apiserver", "etcd"], "one flag that is not known is enough, and etcd never goes alone"
