"""Corefiles of older releases: what CoreDNS's own migration library answered, and what follows from its table."""

import json
from pathlib import Path
from typing import Any

import pytest

from garboard.errors import GarboardError, InvalidValue
from garboard.manifests.coredns import coredns_objects
from garboard.manifests.corefile import corefile_text, read_corefile
from garboard.manifests.corefile_migration import is_default, migrate, must_migrate, notices
from garboard.manifests.corefile_versions import CHANGES, VERSIONS
from garboard.model.cluster import ClusterConfiguration
from garboard.model.minors import MINORS

# Random Corefiles with what corefile-migration v1.0.34 made of them.
VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "vectors/corefile/migrations.json").read_text())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda each: f"{each['from']} to {each['to']}")
def test_answers_are_those_of_the_library(vector: dict[str, Any]) -> None:
    text, way = vector["corefile"], {"found": vector["from"], "target": vector["to"]}
    assert is_default(text) == vector["isDefault"]
    try:
        assert sorted(map(str, notices(text, **way))) == vector["notices"]
        assert must_migrate(text, **way) == vector["mustMigrate"]
        migrated, error = migrate(text, **way), ""
    except GarboardError as refused:
        migrated, error = "", refused.message
    assert (migrated, error) == (vector["migrated"], vector["error"])


@pytest.mark.parametrize("vector", VECTORS, ids=lambda each: f"{each['from']} to {each['to']}")
def test_what_is_written_reads_back(vector: dict[str, Any]) -> None:
    corefile = read_corefile(vector["migrated"])
    assert read_corefile(corefile_text(corefile)) == corefile


def test_comments_quotes_and_braces_are_read_as_caddy_reads_them() -> None:
    (server,) = read_corefile('.:53 a { # why\n log "{remote} \\"x\\"" y#z w\n hosts {\n  1.2.3.4 a\n }\n}\n')
    assert server.zones == (".:53", "a")
    assert server.plugins[0].args == ('{remote} "x"', "y", "w")
    assert [str(option) for option in server.plugins[1].options] == ["1.2.3.4 a"]


def test_every_change_is_about_releases_that_are_known() -> None:
    for change in CHANGES:
        assert change.holds_in(change.since)
        assert not change.until or not change.holds_in(change.until)
    for facts in MINORS.values():
        assert facts.coredns_tag.removeprefix("v") in VERSIONS


def test_a_release_never_migrates_its_own_corefile() -> None:
    content: Any = next(each for each in coredns_objects(ClusterConfiguration()) if each.kind == "ConfigMap").content
    text = content["data"]["Corefile"]
    assert not is_default(text)
    assert not must_migrate(text, found="1.9.3", target=VERSIONS[-1])


@pytest.mark.parametrize("found", ["", "1.0.0", "v1.9.3", "latest"])
def test_an_unknown_release_is_refused(found: str) -> None:
    with pytest.raises(InvalidValue, match="not supported"):
        migrate(".:53 {\n}\n", found=found, target=VERSIONS[-1])


def test_there_is_no_way_back() -> None:
    with pytest.raises(InvalidValue, match=r"cannot migrate up to '1\.14\.2' from '1\.14\.6'"):
        notices("", found="1.14.6", target="1.14.2")
