"""Laws that hold for every configuration: what is printed is read back the same, and nothing makes us stumble."""

import contextlib
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.config import ConfigFile, FixedFacts, ReadOptions, check_file, configuration_text, migrated_text
from garboard.documents import Json, write_yaml
from garboard.errors import BadDocument
from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.schema import FieldType, StructType, load_schema

KINDS = ("InitConfiguration", "ClusterConfiguration", "JoinConfiguration", "ResetConfiguration", "UpgradeConfiguration")
API = "kubeadm.k8s.io/v1beta4"
FACTS = FixedFacts(files=frozenset({"/exists"}))
OPTIONS = ReadOptions(is_strict=False, detects_cri=False)

# Words that mean something somewhere, so that some of what is drawn is valid.
WORDS = st.sampled_from([
    "", "a", "node-1", "/abs/path", "relative", "10.0.0.1", "fd00::1", "10.244.0.0/16", "fd00::/56", "10.96.0.0/12",
    "10.0.0.0/8,fd00::/112", "https://10.0.0.1:2379", "lb.example.com:6443", "unix:///run/x.sock", "/exists", "Never",
    "abcdef.0123456789abcdef", "RSA-2048", "v1.36.2", "v1.37.0-rc.1", "MNT_FORCE", "signing", "authentication",
    "false", "24", "node-cidr-mask-size-ipv4", "0f" * 32, "é\n\x00", "/etc/x.crt", "*.example.com",
])  # fmt: skip
SCALARS: dict[str, st.SearchStrategy[Json]] = {
    "string": WORDS,
    "bool": st.booleans(),
    "duration": st.sampled_from(["0s", "1h30m", "500ms", "87601h"]),
    "time": st.just("2030-01-01T00:00:00Z"),
    "bootstrapToken": st.just("abcdef.0123456789abcdef"),
    "quantity": st.sampled_from(["1", "500m", "1Gi"]),
}
ANYTHING: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)


@st.composite
def documents(draw: st.DrawFn, type_: StructType, depth: int) -> Json:
    """Draw a document of a type; now and then a value does not fit."""
    names = [name for name in type_.fields if name not in ("apiVersion", "kind")]
    chosen = draw(st.lists(st.sampled_from(names), max_size=4, unique=True)) if names else []
    return {name: draw(values(type_.fields[name], depth)) for name in chosen}


def values(field: FieldType, depth: int) -> st.SearchStrategy[Json]:
    return st.integers(0, 15).flatmap(lambda dice: fitting(field, depth) if dice else ANYTHING)


def fitting(field: FieldType, depth: int) -> st.SearchStrategy[Json]:
    if depth == 0 or field.kind == "any":
        return st.none()
    if field.kind == "struct" and field.type is not None:
        return documents(field.type, depth - 1)
    if field.kind == "list" and field.of is not None:
        return st.lists(values(field.of, depth - 1), max_size=2).map(list)
    if field.kind == "map" and field.of is not None:
        return st.dictionaries(WORDS, values(field.of, depth - 1), max_size=2)
    return SCALARS.get(field.scalar, st.sampled_from([0, 1, 6443, 70000]))


@st.composite
def files(draw: st.DrawFn) -> tuple[str, KubernetesVersion]:
    version = draw(st.sampled_from(SUPPORTED_VERSIONS))
    texts = []
    for kind in draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=2, unique=True)):
        type_ = load_schema(version).type_of(API, kind)
        assert type_ is not None
        tree = draw(documents(type_, 4))
        assert isinstance(tree, dict)
        texts.append(write_yaml({"apiVersion": API, "kind": kind, **tree}))
    return "---\n".join(texts), version


def read(text: str, version: KubernetesVersion, *, is_strict: bool = False) -> ConfigFile:
    options = replace(OPTIONS, is_strict=is_strict)
    return ConfigFile.read(text, file="f.yaml", host=FACTS, options=options, version=version)


@settings(max_examples=150, deadline=None)
@given(files())
def test_what_is_printed_is_read_back_the_same(drawn: tuple[str, KubernetesVersion]) -> None:
    text, version = drawn
    try:
        file = read(text, version)
        checked = check_file(file)
    except BadDocument:
        return
    printed = migrated_text(checked, file)
    again = read(printed, file.version.release, is_strict=True)
    assert check_file(again).configs == checked.configs
    for config in checked.configs:
        assert configuration_text(config, again.version.facts) in printed


@settings(max_examples=60, deadline=None)
@given(data=st.text() | st.binary(), prefix=st.sampled_from(["", f"apiVersion: {API}\nkind: ClusterConfiguration\n"]))
def test_whatever_is_no_configuration_is_refused_as_a_document(data: str | bytes, prefix: str) -> None:
    whole = prefix + data if isinstance(data, str) else prefix.encode() + data
    with contextlib.suppress(BadDocument):
        check_file(ConfigFile.read(whole, file="f.yaml", host=FACTS, options=OPTIONS))
