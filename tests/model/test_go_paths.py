import pytest

from garboard.model.go_paths import join_path, parent_of


@pytest.mark.parametrize(
    ("parts", "joined"),
    [
        (("/etc/kubernetes/pki", "ca.crt"), "/etc/kubernetes/pki/ca.crt"),
        (("//srv/../srv/pki//", "etcd/ca.crt"), "/srv/pki/etcd/ca.crt"),
        (("", "a"), "a"),
        (("a", "", "../b"), "b"),
    ],
)
def test_joined_paths_are_clean(parts: tuple[str, ...], joined: str) -> None:
    assert join_path(*parts) == joined


@pytest.mark.parametrize(("path", "parent"), [("/a/b", "/a"), ("/a", "/"), ("a", "."), ("", "."), ("/a/../b/c", "/b")])
def test_the_folder_of_a_file(path: str, parent: str) -> None:
    assert parent_of(path) == parent
