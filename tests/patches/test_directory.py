"""kubeadm's patch directory: names, order and what is ignored (facts from running kubeadm)."""

import pytest

from garboard.errors import BadDocument
from garboard.model import KubernetesVersion
from garboard.patches import PatchFile, PatchType
from garboard.patches.directory import IgnoredFile, parse_file_name, read_directory, walk_order
from garboard.schema import load_schema

OLD, NEW = load_schema(KubernetesVersion(1, 36, 4)), load_schema(KubernetesVersion(1, 37, 1))


def file(path: str, text: str = "a: 1\n") -> PatchFile:
    return PatchFile(path, f"patches/{path}", text.encode)


@pytest.mark.parametrize(
    ("name", "target", "type_"),
    [
        ("etcd.yaml", "etcd", "strategic"),
        ("kube-apiserver0+merge.yaml", "kube-apiserver", "merge"),
        ("kube-apiserver+json.json", "kube-apiserver", "json"),
        ("kube-scheduler-json.yaml", "kube-scheduler", "strategic"),
        ("kube-apiserver+mergeX.yaml", "kube-apiserver", "merge"),
        ("kube-apiserver.+merge.yaml", "kube-apiserver", "strategic"),
        ("etcdish.yaml", "etcd", "strategic"),
        ("kubeletconfiguration+strategic.old.yaml", "kubeletconfiguration", "strategic"),
    ],
)
def test_name_means(name: str, target: str, type_: str) -> None:
    meaning = parse_file_name(file(name), OLD)
    assert not isinstance(meaning, IgnoredFile)
    assert (meaning[0].name, meaning[1]) == (target, PatchType(type_))


@pytest.mark.parametrize(
    "name", ["etcd.yml", "etcd.yaml.bak", "README.md", "kube-proxy.yaml", "my-etcd.yaml", ".yaml", "etcd.yaml\n"]
)
def test_other_file_is_ignored(name: str) -> None:
    assert isinstance(parse_file_name(file(name), OLD), IgnoredFile)


@pytest.mark.parametrize("name", ["etcd+patch.yaml", "etcd+.yaml", "etcd+Merge.yaml", "etcd+args.yaml"])
def test_unknown_type_after_plus_is_fatal(name: str) -> None:
    with pytest.raises(BadDocument) as failure:
        read_directory([file(name)], OLD)
    assert failure.value.error_class == "bad-file-name"


def test_args_are_a_type_only_where_they_are_admitted() -> None:
    patches = read_directory([file("etcd+args.yaml")], OLD, with_args=True)
    assert [each.patch.type for each in patches.patches] == [PatchType.ARGS]


def test_kube_proxy_can_be_patched_from_1_37() -> None:
    assert isinstance(parse_file_name(file("kubeproxydaemonset.yaml"), OLD), IgnoredFile)
    assert not isinstance(parse_file_name(file("kubeproxydaemonset.yaml"), NEW), IgnoredFile)


def test_order_is_a_lexical_walk_that_descends() -> None:
    names = ["etcd.yaml", "etcd1.yaml", "etcd10.yaml", "etcd2.yaml", "etcd+json.yaml", "etcd-x.yaml", "b/etcd.yaml"]
    walked = [each.path for each in walk_order(map(file, names))]
    expected = ["b/etcd.yaml", "etcd+json.yaml", "etcd-x.yaml", "etcd.yaml", "etcd1.yaml", "etcd10.yaml", "etcd2.yaml"]
    assert walked == expected


def test_documents_of_a_file_apply_top_first_and_know_their_lines() -> None:
    patches = read_directory([file("etcd.yaml", "a: 1\n---\n\n---\nb: 2\n")], OLD)
    assert [(each.patch.value, each.patch.source.line) for each in patches.patches] == [({"a": 1}, 1), ({"b": 2}, 5)]


def test_empty_file_is_ignored_and_a_broken_one_fails_all() -> None:
    assert [each.reason for each in read_directory([file("etcd.yaml", "")], OLD).ignored] == ["the file is empty"]
    with pytest.raises(BadDocument):
        read_directory([file("etcd.yaml"), file("kube-scheduler.yaml", "a: [")], OLD)
