"""`change adopt` at a fake API server; a real cluster is in tests/lab."""

import json
from pathlib import Path
from typing import Any

import pytest

from garboard.change.snapshot import read_snapshot
from garboard.cli.main import run
from garboard.documents import read_yaml
from tests.support.change.api_objects import DNS, NODES, PROXY, PagedApi, stored_objects
from tests.support.change.snapshots import f2

SEEN = f2(is_seen=True)


def test_cluster_is_shown(api: PagedApi, admin: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    api.objects |= {path: each for path, each in stored_objects(SEEN).items() if path not in (DNS, PROXY)}
    assert run(["change", "adopt", *admin]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Kubernetes v1.37.1 at k8s.example.com:6443, stacked etcd\n")
    assert "Findings: 0 danger, 0 warning, 0 note" in out


def test_json_and_yaml_say_the_same(api: PagedApi, admin: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    api.objects |= stored_objects(SEEN)
    answers = []
    for output in ("json", "yaml"):
        assert run(["change", "adopt", "-o", output, *admin]) == 0
        answer: Any = read_yaml(capsys.readouterr().out, source="answer")
        answer["cluster"].pop("observedAt")
        answers.append(answer)
    assert answers[0] == answers[1]
    assert answers[0]["kind"] == "AdoptReport"


def test_snapshot_is_saved_for_its_owner_alone(
    api: PagedApi, admin: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.objects |= stored_objects(SEEN)
    file = tmp_path / "snapshot.json"
    assert run(["change", "adopt", "--save", str(file), *admin]) == 0
    assert capsys.readouterr().err == f"wrote {file}\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in read_snapshot(file.read_bytes(), source=str(file)).nodes] == [
        each.name for each in SEEN.nodes
    ]


def test_nothing_is_written_to_the_cluster(api: PagedApi, admin: list[str]) -> None:
    api.objects |= stored_objects(SEEN)
    before = json.dumps(api.objects)
    assert run(["change", "adopt", *admin]) == 0
    assert {method for method, _ in api.asked} == {"GET"}
    assert json.dumps(api.objects) == before


def test_missing_right_is_an_error_that_names_it(
    api: PagedApi, admin: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    api.refuse("GET", NODES, 403, "Forbidden", "nodes is forbidden")
    assert run(["change", "adopt", *admin]) == 1
    assert capsys.readouterr().err == (
        "error[forbidden]: the right to list nodes --all-namespaces is missing: cannot list Node objects: nodes is"
        " forbidden\nhint: an administrator can grant it: garboard change rbac --user NAME | kubectl apply -f -\n"
    )
