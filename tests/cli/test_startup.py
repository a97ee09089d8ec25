"""What starting costs: commands that read nothing must not load what reading needs."""

import importlib.util
import json
import subprocess
import sys

import pytest

# Each of these costs more than all of garboard's own start.
HEAVY = {
    "yaml",
    "msgspec",
    "cryptography",
    "hypothesis",
    "asyncio",
    "tomllib",
    "importlib.resources",
    "ssl",
    "subprocess",
    "urllib.request",
    "http.client",
    "garboard.documents",
    "garboard.patches",
    "garboard.schema",
}
# What only a control plane, or a node with patches, has a use for: a worker joins in a second, and they take a third.
NOT_FOR_WORKERS = {
    "cryptography",
    "asyncio",
    "garboard.etcd",
    "garboard.manifests.pod",
    "garboard.patches",
    "garboard.phases.init",
    "garboard.node.interpreters.certificates",
    "garboard.phases.node.addons",
    "garboard.phases.node.credentials",
    "garboard.phases.node.static_pods",
    "garboard.phases.node.uploads",
    "garboard.pki.keys",
}
# What a tunnel's end has no use for unless it is asked for it: most stay for months, and their memory counts.
NOT_FOR_TUNNELS = {"yaml", "msgspec", "cryptography", "garboard.documents", "garboard.kube", "garboard.engine",
                   "garboard.tunnel.workers"}  # fmt: skip
PROGRAM = """
import json, sys
from garboard.cli.main import run
status = run(sys.argv[1:])
print("\\n" + json.dumps({"status": status, "modules": sorted(sys.modules)}))
"""


def modules_after(arguments: list[str]) -> set[str]:
    command = [sys.executable, "-c", PROGRAM, *arguments]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    assert answer["status"] == 0
    return set(answer["modules"])


def bare_modules() -> set[str]:
    """What Python itself loads here, before any of our code."""
    command = [sys.executable, "-c", "import json, sys; print(json.dumps(sorted(sys.modules)))"]
    return set(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


@pytest.mark.parametrize("arguments", [["--help"], ["version"], ["patch", "--help"]], ids=" ".join)
def test_command_that_reads_nothing_loads_no_heavy_module(arguments: list[str]) -> None:
    assert not HEAVY & (modules_after(arguments) - bare_modules())


def test_join_of_a_worker_loads_nothing_of_a_control_plane() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.cli.worker_join"], check=True, capture_output=True, text=True
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    assert {"kubelet-start", "kubelet-wait-bootstrap"} <= set(answer["steps"])
    assert not NOT_FOR_WORKERS & (set(answer["modules"]) - bare_modules())
    assert "garboard.kube" in answer["modules"]


@pytest.mark.parametrize("end", ["server", "agent"])
def test_end_of_a_tunnel_loads_no_clients_and_no_documents(end: str) -> None:
    program = f"import json, sys, garboard.cli.tunnel.{end}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert not NOT_FOR_TUNNELS & (set(json.loads(done.stdout)) - bare_modules())


def test_modules_that_a_worker_does_not_load_exist() -> None:
    assert all(importlib.util.find_spec(name) for name in NOT_FOR_WORKERS)


def test_the_list_of_heavy_modules_is_not_vain() -> None:
    assert {"yaml", "msgspec"} <= modules_after(["patch", "apply", "--help"])
