import pytest

from garboard.model.folder_names import is_covered

NAMES = ("ca.crt", "etcd/ca.crt", "pods/")


@pytest.mark.parametrize(("path", "covered"), [
    ("ca.crt", True), ("ca.key", False), ("ca.crt/", False), ("etcd", False), ("etcd/", True), ("etcd/ca.crt", True),
    ("etcd/ca.key", False), ("pods/", True), ("pods", False), ("pods/1/a", True), ("pods/1/", True),
    ("podsx", False), ("pod", False), ("", False),
    (".ca.crt.0a1b2c3d", True), ("etcd/.ca.crt.0a1b2c3d", True), (".ca.key.0a1b2c3d", False), (".ca.crt.bak", False),
    (".ca.crt.0a1b2c3d/", False), ("x/ca.crt", False), ("etc/", False), ("ca.cr", False),
])  # fmt: skip
def test_a_path_is_one_of_the_names_or_leads_to_one_or_is_below_a_whole_folder(path: str, covered: bool) -> None:
    assert is_covered(path, NAMES) == covered
