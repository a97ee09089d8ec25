from pathlib import Path

import pytest

from garboard.host import Machine
from garboard.lab.cgroups import Hierarchy, LabGroups, parse_hierarchies

V1 = r"""
22 27 0:21 / /proc rw,relatime - proc proc rw
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
40 31 0:37 / /sys/fs/cgroup/system\040d rw,relatime - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
99 31 0:32 /other /mnt/again rw,relatime - cgroup cgroup rw,memory
"""


def test_hierarchies_are_read_once_each_with_the_options_that_mount_them() -> None:
    assert parse_hierarchies(V1) == (
        Hierarchy(Path("/sys/fs/cgroup/memory"), "cgroup", "memory"),
        Hierarchy(Path("/sys/fs/cgroup/cpu,cpuacct"), "cgroup", "cpu,cpuacct"),
        Hierarchy(Path("/sys/fs/cgroup/system d"), "cgroup", "xattr,name=systemd"),
        Hierarchy(Path("/sys/fs/cgroup/unified"), "cgroup2", ""),
    )


def test_pure_v2_has_one_hierarchy() -> None:
    text = "25 30 0:23 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"
    (only,) = parse_hierarchies(text)
    assert only.is_v2
    assert only.path == Path("/sys/fs/cgroup")


@pytest.fixture
def groups(tmp_path: Path) -> LabGroups:
    """Ordinary folders stand for two hierarchies; a group is a folder there too."""
    for name in ("memory", "cpuset"):
        (tmp_path / name).mkdir()
    (tmp_path / "cpuset/cpuset.cpus").write_text("0-1")
    return LabGroups(
        Machine(),
        (Hierarchy(tmp_path / "memory", "cgroup", "memory"), Hierarchy(tmp_path / "cpuset", "cgroup", "cpuset")),
        "lab",
    )


def test_a_node_has_a_group_with_a_leaf_in_every_hierarchy(groups: LabGroups, tmp_path: Path) -> None:
    groups.make("cp1")
    assert [str(each.relative_to(tmp_path)) for each in groups.entry_files("cp1")] == [
        "memory/garboard-lab/lab/cp1/system/cgroup.procs",
        "cpuset/garboard-lab/lab/cp1/system/cgroup.procs",
    ]
    assert all(each.parent.is_dir() for each in groups.entry_files("cp1"))


def test_removing_a_lab_leaves_other_labs_alone(groups: LabGroups, tmp_path: Path) -> None:
    other = LabGroups(groups.files, groups.hierarchies, "other")
    groups.make("cp1")
    other.make("cp1")
    assert groups.remove() == []
    assert [path.name for path in (tmp_path / "memory/garboard-lab").iterdir()] == ["other"]
    assert other.remove() == []
    assert not (tmp_path / "memory/garboard-lab").exists()


def test_what_is_in_use_is_reported_and_stays(tmp_path: Path) -> None:
    busy = tmp_path / "group/pods/pod"
    busy.mkdir(parents=True)
    (busy / "in-use").write_text("")
    groups = LabGroups(Machine(), (), "lab")
    assert groups.remove_below(tmp_path / "group") == [busy]
    (busy / "in-use").unlink()
    assert groups.remove_below(tmp_path / "group") == []
    assert not (tmp_path / "group").exists()


def test_the_memory_of_a_lab_is_its_working_set(groups: LabGroups) -> None:
    groups.make("cp1")
    assert groups.memory_bytes() is None
    group = groups.group(groups.hierarchies[0])
    (group / "memory.usage_in_bytes").write_text("1000\n")
    (group / "memory.stat").write_text("inactive_file 1\ntotal_inactive_file 300\n")
    assert groups.memory_bytes() == 700


def test_a_process_is_admitted_to_every_group_and_listed_there(groups: LabGroups) -> None:
    groups.make("cp1")
    groups.admit("cp1", 4711)
    entry = groups.entry_files("cp1")[0]
    assert groups.members(entry.parent) == [4711]
    entry.write_text("0\n4712\n")  # as the kernel shows a process of another namespace
    assert groups.members(entry.parent) == [4712]
    assert groups.members(entry.parent / "gone") == []


def test_a_new_cpuset_of_cgroup_v1_gets_the_processors_of_its_parent(groups: LabGroups, tmp_path: Path) -> None:
    node = tmp_path / "cpuset/garboard-lab"
    node.mkdir()
    for name in ("cpuset.sched_load_balance", "cpuset.cpus"):  # as the kernel fills a new group
        (node / name).write_text("")
    groups.make("cp1")
    assert (node / "cpuset.cpus").read_text() == "0-1"
