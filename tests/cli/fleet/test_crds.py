"""`garboard fleet crds`."""

import json

import pytest

from garboard.cli.main import run
from garboard.documents import read_stream
from garboard.fleet.crds import custom_resource_definitions


def test_yaml_holds_one_document_for_each_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fleet", "crds"]) == 0
    printed = read_stream(capsys.readouterr().out.encode(), source="crds")
    assert [each.value for each in printed] == list(custom_resource_definitions())


def test_json_is_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fleet", "crds", "-o", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["kind"] == "List"
    assert printed["items"] == list(custom_resource_definitions())
