"""Every field of every type that a target can reach, misspelt by one letter, is caught where it stands."""

import json
import string
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.documents import Position
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.patches import Finding, Patch, PatchType, SourceText, check_patch
from garboard.schema import FieldType, StructType, load_schema

ROOTS = (
    ("v1", "Pod"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "DaemonSet"),
    ("kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"),
)
# One seed decides the misspelling of every field, so that no example grows with the number of fields.
RANDOMS = st.integers(0, 2**32).map(Random)


@dataclass(frozen=True)
class Reach:
    """A type, and the shortest way to it: the fields from the root, each with its name."""

    root: StructType
    type: StructType
    way: tuple[tuple[str, FieldType], ...]

    @property
    def merge_key(self) -> str:
        """The merge key of the list whose elements are of this type, if the way ends in one."""
        last = self.way[-1][1] if self.way else None
        return last.merge_key if last is not None and last.strategy == "merge" else ""


@cache
def reachable(version: KubernetesVersion) -> tuple[Reach, ...]:
    schema = load_schema(version)
    found: dict[str, Reach] = {}
    for api_version, kind in ROOTS:
        root = schema.type_of(api_version, kind)
        assert root is not None
        waiting = deque([Reach(root, root, ())])
        while waiting:
            reach = waiting.popleft()
            if reach.type.name in found:
                continue
            found[reach.type.name] = reach
            for name, field in reach.type.fields.items():
                inner = field
                while inner.of is not None:
                    inner = inner.of
                if inner.kind == "struct" and inner.type is not None:
                    waiting.append(Reach(root, inner.type, (*reach.way, (name, field))))
    return tuple(found.values())


def misspell(word: str, random: Random) -> str:
    """Change, drop, add or swap one letter."""
    at = random.randrange(len(word))
    letter = random.choice(string.ascii_letters)
    return random.choice(
        (
            word[:at] + letter + word[at + 1 :],
            word[:at] + word[at + 1 :],
            word[:at] + letter + word[at:],
            word[:at] + word[at + 1 : at + 2] + word[at : at + 1] + word[at + 2 :],
        )
    )


def misspelt_fields(type_: StructType, random: Random) -> Iterator[tuple[str, str]]:
    """Yield each field with a misspelling that is no field itself and not yet used."""
    used: set[str] = set()
    for name in type_.fields:
        wrong = misspell(name, random)
        while not wrong or wrong in type_.fields or wrong in used:
            wrong = misspell(name, random)
        used.add(wrong)
        yield name, wrong


def opening(reach: Reach) -> tuple[str, str]:
    """Return the text that leads to the type, and the text that closes what it opened."""
    begin, end = "{", "}"
    for name, field in reach.way:
        begin += f'"{name}": '
        inner: FieldType = field
        while inner.of is not None:
            begin, end = (
                begin + ("[" if inner.kind == "list" else '{"key": '),
                ("]" if inner.kind == "list" else "}") + end,
            )
            inner = inner.of
        begin, end = begin + "{", "}" + end
        if field.strategy == "merge" and inner.type is not None:
            scalar = inner.type.fields[field.merge_key].scalar
            filler = "10.0.0.1" if field.merge_key == "ip" else "x"
            begin += f'"{field.merge_key}": {"1" if scalar.startswith("int") else json.dumps(filler)}, '
    return begin, end


def check(text: str, type_: PatchType, reach: Reach, version: KubernetesVersion) -> list[Finding]:
    patch = Patch.from_yaml(SourceText("patch.yaml", text), type_)
    return check_patch(patch, reach.root, load_schema(version))


def assert_caught(findings: list[Finding], places: list[Position], type_: StructType) -> None:
    assert [(each.error_class, each.position) for each in findings] == [("unknown-field", place) for place in places]
    for finding in findings:
        assert finding.hint is not None
        assert finding.hint.endswith("has it; the patch cannot serve both minors") or any(
            finding.hint == f"did you mean {name!r}?" for name in type_.fields
        )


@pytest.mark.parametrize("type_", [PatchType.STRATEGIC, PatchType.MERGE], ids=str)
@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
@given(random=RANDOMS)
@settings(max_examples=2, deadline=None)
def test_misspelt_field_is_caught_at_its_key(version: KubernetesVersion, type_: PatchType, random: Random) -> None:
    for reach in reachable(version):
        begin, end = opening(reach)
        lines = []
        places = []
        for number, (_, wrong) in enumerate(misspelt_fields(reach.type, random)):
            lines.append(f"{' ' * (number % 7)}{json.dumps(wrong)}: null,")
            places.append(Position(number + 2, number % 7 + 1))
        text = "\n".join([begin, *lines, end])
        assert_caught(check(text, type_, reach, version), places, reach.type)


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
@given(random=RANDOMS)
@settings(max_examples=2, deadline=None)
def test_misspelt_field_is_caught_inside_a_json_pointer(version: KubernetesVersion, random: Random) -> None:
    for reach in reachable(version):
        pointer = ""
        for name, field in reach.way:
            pointer += f"/{name}"
            while field.of is not None:
                pointer += "/0" if field.kind == "list" else "/key"
                field = field.of
        lines = []
        places = []
        for number, (_, wrong) in enumerate(misspelt_fields(reach.type, random)):
            lines.append(f'- {{"op": "add", "value": null, "path": "{pointer}/{wrong}"}}')
            places.append(Position(number + 1, lines[-1].rindex("/") + 2))
        assert_caught(check("\n".join(lines), PatchType.JSON, reach, version), places, reach.type)


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
@given(random=RANDOMS)
@settings(max_examples=5, deadline=None)
def test_misspelt_merge_key_gives_that_one_finding(version: KubernetesVersion, random: Random) -> None:
    for reach in reachable(version):
        if not reach.merge_key:
            continue
        wrong = misspell(reach.merge_key, random)
        if not wrong or wrong in reach.type.fields:
            continue
        begin, end = opening(reach)
        without_key = begin[: begin.rindex("{") + 1]
        text = f"{without_key}\n  {json.dumps(wrong)}: null\n{end}"
        found = [(each.error_class, each.position) for each in check(text, PatchType.STRATEGIC, reach, version)]
        near_another_field = [("unknown-field", Position(2, 3)), ("no-merge-key", Position(1, len(without_key)))]
        assert found in ([("unknown-field", Position(2, 3))], near_another_field)


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS, ids=str)
def test_correctly_spelt_fields_are_not_caught(version: KubernetesVersion) -> None:
    for reach in reachable(version):
        begin, end = opening(reach)
        left_out = (reach.merge_key, "apiVersion", "kind")  # removing what names the document is refused
        names = [name for name in reach.type.fields if name not in left_out]
        text = begin + ", ".join(f"{json.dumps(name)}: null" for name in names) + end
        assert check(text, PatchType.STRATEGIC, reach, version) == []


def test_the_types_of_every_target_are_covered() -> None:
    for version in SUPPORTED_VERSIONS:
        names = {reach.type.name for reach in reachable(version)}
        assert {"core/v1.PodSpec", "core/v1.Container", "apps/v1.DaemonSetSpec", "core/v1.NodeAffinity"} <= names
        assert sum(len(reach.type.fields) for reach in reachable(version)) > 800
