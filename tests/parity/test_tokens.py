"""`token` beside kubeadm's at one live API server: what is made, and what is printed of it."""

import base64
import json
import re
from collections.abc import Iterator

import pytest

from garboard.lab.binaries import Binaries
from garboard.model import SUPPORTED_VERSIONS
from tests.support.parity.live import (
    ADMIN_BINDING,
    SUPER_ADMIN,
    LiveCluster,
    Object,
    Programs,
    control_plane,
    make_node_files,
    when_ready,
)
from tools.harness.machine import Machine

pytestmark = pytest.mark.real
TOKEN = re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b")
CREATIONS = {
    "nothing": (),
    "all flags": (
        *("--ttl", "90m", "--description", "for a rack", "--groups", "system:bootstrappers:a"),
        *("--groups", "system:bootstrappers:b,system:bootstrappers:c", "--usages", "authentication"),
    ),
    "for ever": ("--ttl", "0"),
    "a long story": ("--description", "x" * 70),
    "join command": ("--print-join-command",),
    "join command of a control plane": ("--print-join-command", "--certificate-key", "ab" * 32),
}
REFUSED = {
    "no token": ("create", "nonsense"),
    "signing has no groups": ("create", "--usages", "signing"),
    "unknown usage": ("create", "--usages", "nothing"),
    "bad group": ("create", "--groups", "me"),
    "an empty usage": ("create", "--usages", "signing,,authentication"),
    "a certificate key for nobody": ("create", "--certificate-key", "ab" * 32),
    "a token that is not there": ("delete", "zzzzzz"),
    "no id": ("delete", "x"),
    "nothing to delete": ("delete",),
}


@pytest.fixture(scope="module", params=SUPPORTED_VERSIONS, ids=str)
def cluster(
    request: pytest.FixtureRequest, binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveCluster]:
    programs = Programs.of(str(request.param), binaries)
    machine = Machine.make(tmp_path_factory.mktemp("machine"))
    make_node_files(machine, programs.version)
    with control_plane(machine, programs) as started:
        yield when_ready(started)


def kubeadm(cluster: LiveCluster, *line: str) -> tuple[int, str]:
    done = cluster.machine.run(cluster.programs.kubeadm, "token", *line, "--kubeconfig", SUPER_ADMIN)
    return done.returncode, done.stdout


def garboard(cluster: LiveCluster, *line: str) -> tuple[int, str]:
    done = cluster.machine.run_garboard("token", *line, "--kubeconfig", SUPER_ADMIN)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout


def secret_of(cluster: LiveCluster, printed: str) -> Object:
    """Return the Secret of the token that was printed, without what is drawn."""
    token = TOKEN.findall(printed)[0]
    text = cluster.kubectl("get", "secret", "-n", "kube-system", f"bootstrap-token-{token[:6]}", "-o", "json")
    secret: Object = json.loads(text)
    data = {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
    assert (data.pop("token-id"), data.pop("token-secret")) == tuple(token.split("."))
    return {"type": secret["type"], "data": {key: value for key, value in data.items() if key != "expiration"},
            "expires": "expiration" in data}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("flags", CREATIONS.values(), ids=CREATIONS.keys())
def test_tokens_of_both_are_equal(cluster: LiveCluster, flags: tuple[str, ...]) -> None:
    status, theirs = kubeadm(cluster, "create", *flags)
    assert status == 0
    status, ours = garboard(cluster, "create", *flags)
    assert status == 0
    assert TOKEN.sub("TOKEN", ours) == TOKEN.sub("TOKEN", theirs).replace("kubeadm join", "garboard join")
    assert secret_of(cluster, ours) == secret_of(cluster, theirs)


@pytest.mark.parametrize("output", ["text", "json", "yaml"])
def test_lists_of_both_are_equal(cluster: LiveCluster, output: str) -> None:
    found = [tool(cluster, "list", "-o", output) for tool in (garboard, kubeadm)]
    assert found[0] == found[1]
    assert len(TOKEN.findall(found[0][1])) >= 1


def test_deleting_all_leaves_nothing_to_list(cluster: LiveCluster) -> None:
    tokens = TOKEN.findall(garboard(cluster, "list")[1])
    _, theirs = kubeadm(cluster, "delete", tokens[0])
    _, ours = garboard(cluster, "delete", tokens[1][:6], *tokens[2:])
    assert theirs == f'bootstrap token "{tokens[0][:6]}" deleted\n'
    assert ours == "".join(f'bootstrap token "{each[:6]}" deleted\n' for each in tokens[1:])
    assert garboard(cluster, "list") == kubeadm(cluster, "list") == (0, "")
    assert set(cluster.objects()) <= {ADMIN_BINDING}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("line", REFUSED.values(), ids=REFUSED.keys())
def test_both_refuse(cluster: LiveCluster, line: tuple[str, ...]) -> None:
    assert kubeadm(cluster, *line)[0] != 0
    assert garboard(cluster, *line)[0] != 0


def test_same_id_is_not_made_twice(cluster: LiveCluster) -> None:
    assert garboard(cluster, "create", "abcdef.0123456789abcdef") == (0, "abcdef.0123456789abcdef\n")
    assert garboard(cluster, "create", "abcdef.ffffffffffffffff")[0] == 1
    assert kubeadm(cluster, "create", "abcdef.ffffffffffffffff")[0] == 1


def test_token_that_is_generated_is_one_and_made_nowhere(cluster: LiveCluster) -> None:
    before = garboard(cluster, "list")
    done = cluster.machine.run_garboard("token", "generate")
    assert TOKEN.fullmatch(done.stdout.strip())
    assert garboard(cluster, "list") == before
