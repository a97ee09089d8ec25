"""Manifests of hosts, edited, and the bundles that are made of them."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from garboard.documents import read_yaml, write_yaml
from garboard.errors import BadDocument
from garboard.fleet.installers import (
    Bundles,
    BundleSecrets,
    InstallMetadata,
    build_bundles,
    hosts_metadata,
    read_hosts_config,
    read_hosts_metadata,
    render_manifests,
)
from garboard.pki.chain import authority_pins
from garboard.pki.keys import SystemKeys
from tests.support.fleet.install_configs import CONFIG, HOSTS

SECRETS = BundleSecrets("abcdef.0123456789abcdef", "0" * 64)
CONFIGURATION = read_hosts_config(CONFIG, source="x")
Edit = Callable[[dict[str, bytes]], object]


def tree() -> dict[str, bytes]:
    return {each.path: each.data for each in render_manifests(CONFIGURATION)}


def bundles(edit: Edit = lambda _tree: None) -> Bundles:
    edited = tree()
    edit(edited)
    metadata = InstallMetadata("c1-abcde", "id", "c1")
    return build_bundles(CONFIGURATION, edited, metadata, SECRETS, SystemKeys(), datetime.now(UTC))


def set_in(path: str, **members: object) -> Edit:
    def edit(files: dict[str, bytes]) -> None:
        document = read_yaml(files[path], source=path)
        assert isinstance(document, dict)
        files[path] = write_yaml({**document, **members}).encode()  # type: ignore[dict-item]

    return edit


def test_tree_has_one_object_for_each_file_and_is_the_same_each_time() -> None:
    assert tree() == tree()
    assert sorted(tree()) == [
        "addons/000-configmap-first.yaml",
        *(f"hosts/cp1/{each}.yaml" for each in (
            "InitConfiguration", "patches/etcd", "patches/kube-apiserver", "patches/kube-controller-manager",
            "patches/kube-scheduler", "patches/kubeletconfiguration",
        )),
        *(f"hosts/cp2/{each}.yaml" for each in (
            "JoinConfiguration", "patches/etcd", "patches/kube-apiserver", "patches/kube-controller-manager",
            "patches/kube-scheduler", "patches/kubeletconfiguration",
        )),
        "hosts/worker1/JoinConfiguration.yaml",
        "hosts/worker1/patches/kubeletconfiguration.yaml",
        "kubeadm/ClusterConfiguration.yaml",
        "kubeadm/KubeProxyConfiguration.yaml",
        "kubeadm/KubeletConfiguration.yaml",
    ]  # fmt: skip
    assert all(read_yaml(data, source=path)["kind"] for path, data in tree().items())  # type: ignore[index,call-overload]


def test_authority_goes_to_the_first_control_plane_alone_and_everybody_knows_its_pin() -> None:
    made = bundles()
    assert sorted(name for name in made.files["cp1"] if name.startswith("pki/")) == ["pki/ca.crt", "pki/ca.key"]
    pin = authority_pins(made.files["cp1"]["pki/ca.crt"].encode())[0]
    assert made.metadata.authority == pin
    for host in ("cp2", "worker1"):
        assert sorted(made.files[host]) == ["kubeadm.yaml"]
        assert pin in made.files[host]["kubeadm.yaml"]


def test_secrets_are_in_bundles_and_not_in_metadata() -> None:
    made = bundles()
    written = hosts_metadata(made.metadata).decode()
    assert read_hosts_metadata(written.encode(), source="x").hosts == CONFIGURATION.hosts
    assert SECRETS.token in made.files["worker1"]["kubeadm.yaml"]
    assert SECRETS.certificate_key in made.files["cp2"]["kubeadm.yaml"]
    assert SECRETS.certificate_key not in made.files["worker1"]["kubeadm.yaml"]
    for secret in (SECRETS.token, SECRETS.certificate_key, "PRIVATE KEY"):
        assert secret not in written
        assert secret not in repr(made)


def test_patches_that_were_not_edited_are_not_sent() -> None:
    edit = set_in("hosts/worker1/patches/kubeletconfiguration.yaml", maxPods=42)
    made = bundles(edit)
    assert sorted(made.files["worker1"]) == ["kubeadm.yaml", "patches/kubeletconfiguration+strategic.yaml"]
    assert all("patches/" not in name for host in ("cp1", "cp2") for name in made.files[host])


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (set_in("hosts/cp2/JoinConfiguration.yaml", nodeRegistration={"name": "x"}), "nodeRegistration.name is 'x'"),
        (set_in("hosts/cp2/JoinConfiguration.yaml", nonsense=1), "hosts/cp2/JoinConfiguration.yaml"),
        (set_in("kubeadm/ClusterConfiguration.yaml", networking={"podSubnet": "x"}), "podSubnet"),
        (set_in("hosts/cp1/patches/etcd.yaml", spec={"containers": [{"image": "x"}]}), "hosts/cp1"),
        (lambda files: files.pop("hosts/worker1/JoinConfiguration.yaml"), "it has gone"),
        (lambda files: files.update({"addons/000-configmap-first.yaml": b"- x\n"}), "it is no object"),
        (lambda files: files.update({"hosts/cp1/InitConfiguration.yaml": b"{"}), "hosts/cp1/InitConfiguration.yaml"),
    ],
    ids=["another name", "unknown field", "bad value", "patch without its key", "gone", "no object", "no YAML"],
)  # fmt: skip
def test_manifests_that_kubeadm_would_refuse_are_refused(edit: Edit, said: str) -> None:
    with pytest.raises(BadDocument) as refused:
        bundles(edit)
    assert said in refused.value.message


def test_all_hosts_have_a_bundle() -> None:
    assert tuple(bundles().files) == HOSTS
