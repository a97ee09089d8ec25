from pathlib import Path

from garboard.lab.cgroups import Hierarchy
from garboard.lab.layout import NodeFiles
from garboard.lab.namespaces import SYSCTLS, MountStep, WriteStep, plan_mounts, plan_root

HOME = Path("/var/lib/garboard/lab")
FILES = NodeFiles(HOME / "labs/lab/nodes/cp1")
ENTRIES = [
    ("bin", "usr/bin", True),
    ("etc", None, True),
    ("initrd.img", "boot/initrd.img", False),
    ("proc", None, True),
    ("srv", None, True),
    ("swapfile", None, False),
    ("usr", None, True),
    ("var", None, True),
]


def test_folders_are_shown_through_and_links_copied() -> None:
    root = plan_root(ENTRIES, HOME)
    assert root.overlaid == ("etc", "srv", "usr")
    assert root.links == {"bin": "usr/bin", "initrd.img": "boot/initrd.img"}


def test_the_folder_that_holds_the_labs_is_never_shown_through() -> None:
    # An overlay whose changes lie below the folder that it covers is refused by the kernel.
    assert "srv" not in plan_root(ENTRIES, Path("/srv/labs")).overlaid


def test_every_mount_lies_inside_the_node_and_changes_stay_in_its_folder() -> None:
    steps = plan_mounts(FILES, plan_root(ENTRIES, HOME), [Hierarchy(Path("/sys/fs/cgroup/memory"), "cgroup", "memory")])
    mounts = [step for step in steps if isinstance(step, MountStep)]
    assert all(mount.target.startswith("/") for mount in mounts)
    usr = next(mount for mount in mounts if mount.target == "/usr")
    assert usr.options == f"lowerdir=/usr,upperdir={FILES.upper}/usr,workdir={FILES.work}/usr"
    assert MountStep("cgroup", "cgroup", "/sys/fs/cgroup/memory", "memory") in mounts


def test_the_kubelets_sysctls_are_files_of_the_node_and_those_of_its_network_are_real() -> None:
    steps = plan_mounts(FILES, plan_root(ENTRIES, HOME), [])
    covered = {step.target for step in steps if isinstance(step, MountStep) and step.kind == "bind"}
    assert covered == {f"/proc/sys/{name}" for name in SYSCTLS}
    written = [step.path for step in steps if isinstance(step, WriteStep)]
    assert all(path.startswith("/proc/sys/net/") for path in written)


def test_pure_cgroup_v2_is_one_mount() -> None:
    steps = plan_mounts(FILES, plan_root(ENTRIES, HOME), [Hierarchy(Path("/sys/fs/cgroup"), "cgroup2", "")])
    cgroups = [step for step in steps if isinstance(step, MountStep) and step.target.startswith("/sys/fs/cgroup")]
    assert cgroups == [MountStep("cgroup2", "cgroup2", "/sys/fs/cgroup")]
