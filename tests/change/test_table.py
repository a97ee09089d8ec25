"""The attribute table has a row for everything that a cluster stores, and every code that it uses means something."""

from collections.abc import Iterator

import pytest

from garboard.change import rows_flags
from garboard.change.attribute import INIT, JOIN, STORED_KINDS, AttributeRow
from garboard.change.codes import CODES, OWN_CODES, Weight
from garboard.change.judges import _JUDGES
from garboard.change.rows_flags import FlagRow, flag_row
from garboard.change.table import _ROWS, attribute_table
from garboard.model import SUPPORTED_VERSIONS
from garboard.schema import StructType, load_schema

KINDS = [
    pytest.param(kind, id=f"{version.as_minor} {kind}")
    for version in SUPPORTED_VERSIONS
    for kind in load_schema(version).kinds()
    if kind.name in (*STORED_KINDS, INIT, JOIN) and not kind.api_version.endswith("v1beta3")
]


def leaves(type_: StructType, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every leaf of a type; lists and maps count for what they hold."""
    for name, field in type_.fields.items():
        inner = field
        while inner.kind in ("list", "map") and inner.of is not None:
            inner = inner.of
        if inner.kind == "struct" and inner.type is not None:
            yield from leaves(inner.type, (*path, name))
        else:
            yield (*path, name)


@pytest.mark.parametrize("kind", KINDS)
def test_every_leaf_has_a_row(kind: object) -> None:
    table = attribute_table(kind.name)  # type: ignore[attr-defined]
    assert [path for path in leaves(kind.type) if table.row(path) is None] == []  # type: ignore[attr-defined]


def test_a_field_that_nobody_knows_has_no_row() -> None:
    assert attribute_table("KubeletConfiguration").row(("someday",)) is None


def test_every_row_names_a_field_of_some_minor() -> None:
    for name in STORED_KINDS:
        known = {
            path[:length]
            for version in SUPPORTED_VERSIONS
            for kind in load_schema(version).kinds()
            if kind.name == name
            for path in leaves(kind.type)
            for length in range(1, len(path) + 1)
        }
        rows = attribute_table(name).rows
        assert [path for path in rows if path not in known and path[0] != "featureGates"] == []


def test_every_code_and_judge_of_a_row_exists() -> None:
    rows = [row for kind in _ROWS for row in _ROWS[kind]]
    assert [row.path for row in rows if row.code and row.code not in CODES] == []
    assert [row.path for row in rows if row.judge and row.judge not in _JUDGES] == []
    flags = [row for rows in rows_flags._BY_PROGRAM.values() for row in rows.values()]
    assert [row.code for row in flags if row.code and row.code not in CODES] == []


def test_every_row_says_why() -> None:
    assert [row.path for kind in _ROWS for row in _ROWS[kind] if not row.why] == []


def test_every_row_that_blocks_has_a_route_or_somebody_who_finds_one() -> None:
    rows: list[AttributeRow | FlagRow] = [row for kind in _ROWS for row in _ROWS[kind]]
    rows += [row for of_program in rows_flags._BY_PROGRAM.values() for row in of_program.values()]
    blocking = [row for row in rows if row.code and CODES[row.code].weight >= Weight.BLOCKED]
    assert blocking
    assert [row for row in blocking if not row.route and not row.judge] == []


def test_no_code_of_ours_is_without_a_use() -> None:
    used = {row.code for kind in _ROWS for row in _ROWS[kind]}
    used |= {row.code for rows in rows_flags._BY_PROGRAM.values() for row in rows.values()}
    of_judges = {
        "capacity", "cidr-overlap", "cluster-network-mismatch", "conflicting-edit", "etcd-move", "etcd-version",
        "external-ca", "hand-edit", "implied-removal", "missing-host-path", "no-quorum", "not-looked-at",
        "pod-range-grows",
        "san-in-use", "shadowed-by-flag", "shrinks-capacity",
    }  # fmt: skip
    of_rules = {"bad-flag-value", "flag-conflict", "unknown-feature-gate", "unknown-flag"}
    assert set(OWN_CODES) - used - of_judges - of_rules == set()


@pytest.mark.parametrize("program", ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"])
def test_every_flag_that_a_row_names_exists_in_some_minor(program: str) -> None:
    known = {
        flag
        for version in SUPPORTED_VERSIONS
        if (options := load_schema(version).component(program))
        for flag in options.flags
    }
    names = [name for name, _ in rows_flags._patterns(program) if "*" not in name]
    assert [name for name in names if name not in known] == []
    patterns = [name.partition("*")[0] for name, _ in rows_flags._patterns(program) if "*" in name]
    assert [each for each in patterns if not any(flag.startswith(each) for flag in known)] == []


@pytest.mark.parametrize(
    ("program", "flag", "weight"),
    [
        ("kube-apiserver", "profiling", Weight.ALLOWED),
        ("kube-apiserver", "requestheader-allowed-names", Weight.REFUSED),
        ("kube-apiserver", "oidc-issuer-url", Weight.NOTE),
        ("kube-apiserver", "service_account_key_file", Weight.CONFIRM),
        ("kube-controller-manager", "cluster-cidr", Weight.REFUSED),
        ("kube-scheduler", "config", Weight.NOTE),
        ("etcd", "quota-backend-bytes", Weight.NOTE),
        ("etcd", "initial-cluster", Weight.REFUSED),
    ],
)
def test_flags_have_their_weight(program: str, flag: str, weight: Weight) -> None:
    code = flag_row(program, flag).code
    assert (CODES[code].weight if code else Weight.ALLOWED) is weight
