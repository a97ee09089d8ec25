import pytest

from garboard.lab.order import LAB_PATCHES, merge_patches, target_of


def test_the_labs_patches_stand_where_the_user_has_none() -> None:
    assert merge_patches({}) == LAB_PATCHES
    yours = {"kube-apiserver+merge.yaml": b"{}"}
    assert merge_patches(yours) == {**LAB_PATCHES, **yours}


def test_a_target_that_the_user_patches_is_the_users_alone() -> None:
    yours = {"corednsdeployment1+json.yaml": b"[]"}
    assert merge_patches(yours) == yours


@pytest.mark.parametrize(
    ("name", "target"),
    [("etcd.json", "etcd"), ("kube-apiserver0+merge.yaml", "kube-apiserver"), ("README.md", "README.md")],
)
def test_the_target_is_the_beginning_of_the_name(name: str, target: str) -> None:
    assert target_of(name) == target
