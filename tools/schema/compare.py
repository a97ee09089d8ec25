"""Print what came and went between two minors: kinds, fields, flags, feature gates and the words some flags take.

python -m tools.schema.compare v1.36 v1.37
"""

import sys
from collections.abc import Iterable, Iterator

from garboard.model import KubernetesVersion
from garboard.schema import ComponentOptions, Schema, load_schema

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "etcd")


def differences(older: Schema, newer: Schema) -> Iterator[str]:
    """Yield a line for everything that only one of the two has."""
    yield from _came_and_went("kind", map(str, older.kinds()), map(str, newer.kinds()))
    shared = sorted({kind.type.name for kind in older.kinds()} & {kind.type.name for kind in newer.kinds()})
    yield from _field_differences(older, newer, shared)
    for name in COMPONENTS:
        before, after = older.component(name), newer.component(name)
        if before is not None and after is not None:
            yield from _component_differences(name, before, after)


def _field_differences(older: Schema, newer: Schema, names: list[str]) -> Iterator[str]:
    seen, waiting = set(names), list(names)
    while waiting:
        name = waiting.pop(0)
        before, after = older.type_named(name).fields, newer.type_named(name).fields
        yield from _came_and_went(f"field of {name}:", before, after)
        for field in before.keys() & after.keys():
            old, new = before[field], after[field]
            while old.of is not None and new.of is not None:
                old, new = old.of, new.of
            if old.type is not None and new.type is not None and old.type.name == new.type.name not in seen:
                seen.add(new.type.name)
                waiting.append(new.type.name)
        waiting.sort()


def _component_differences(name: str, before: ComponentOptions, after: ComponentOptions) -> Iterator[str]:
    yield from _came_and_went(f"{name} flag", before.flags, after.flags)
    yield from _came_and_went(f"{name} feature gate", before.feature_gates, after.feature_gates)
    for flag in sorted(before.choices.keys() & after.choices.keys()):
        yield from _came_and_went(f"{name} --{flag}", before.choices[flag], after.choices[flag])


def _came_and_went(what: str, before: Iterable[str], after: Iterable[str]) -> Iterator[str]:
    old, new = set(before), set(after)
    yield from (f"- {what} {each}" for each in sorted(old - new))
    yield from (f"+ {what} {each}" for each in sorted(new - old))


def main(arguments: list[str]) -> int:
    older, newer = (load_schema(KubernetesVersion.parse(text)) for text in arguments)
    print("\n".join(differences(older, newer)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
