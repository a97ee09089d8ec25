import pytest

from garboard.manifests.volumes import Mount, external_etcd_mounts, merged_mounts, same_path
from garboard.model.component import ExternalEtcd


def folders(*paths: str) -> list[str]:
    ca, cert, key = paths
    etcd = ExternalEtcd(endpoints=(), ca_file=ca, cert_file=cert, key_file=key)
    return [each.mount.host_path for each in external_etcd_mounts(etcd, "/etc/kubernetes/pki")]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (("/b/ca.crt", "/a/c.crt", "/a/c.key"), ["/a", "/b"]),
        (("/a/ca.crt", "/a/b/c.crt", "/a/c/c.key"), ["/a"]),
        (("/a/b/ca.crt", "/a/c.crt", "/a/b/c.key"), ["/a"]),
        (("/etc/kubernetes/pki/etcd/ca.crt", "/etc/ssl/certs/c.crt", "/etc/pki/ca-trust/c.key"), []),
        (("", "", ""), []),
        (("/ca.crt", "", ""), ["/"]),
        (("/etcd/ca.crt", "/etcd-client/c.crt", "/etcd/c.key"), ["/etcd"]),
    ],
)
def test_the_folders_of_etcds_certificates_are_mounted_once(paths: tuple[str, str, str], expected: list[str]) -> None:
    assert folders(*paths) == expected


def test_a_later_volume_of_the_same_name_replaces_an_earlier_one() -> None:
    first, second = Mount(same_path("b", "/one")), Mount(same_path("b", "/two"))
    assert merged_mounts([first, Mount(same_path("a", "/a"))], [second]) == (Mount(same_path("a", "/a")), second)
