"""Environment variables of control-plane containers: the machine's proxy settings, and what the user adds."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace

from garboard.documents import Json
from garboard.manifests.sources import ConfigField, HostFact, Source
from garboard.model import KubernetesVersion
from garboard.model.component import EnvVar
from garboard.schema import load_schema, round_trip


@dataclass(frozen=True, slots=True)
class Variable:
    variable: EnvVar
    source: Source

    def document(self) -> dict[str, Json]:
        document: dict[str, Json] = {"name": self.variable.name}
        if self.variable.value:
            document["value"] = self.variable.value
        if self.variable.value_from is not None:
            document["valueFrom"] = self.variable.value_from
        return document


def proxy_variables(environment: Mapping[str, str]) -> tuple[Variable, ...]:
    """Return the variables that set a proxy, in any case: everything that ends in `_proxy` and is not empty."""
    return tuple(
        Variable(EnvVar(name, value), HostFact(f"environment variable {name}"))
        for name, value in sorted(environment.items())
        if name.lower().endswith("_proxy") and value
    )


def extra_variables(envs: tuple[EnvVar, ...], field: ConfigField, version: KubernetesVersion) -> tuple[Variable, ...]:
    return tuple(Variable(_encoded(env, version), field / index) for index, env in enumerate(envs))


def _encoded(env: EnvVar, version: KubernetesVersion) -> EnvVar:
    """Return the variable with its source as Go writes it: quantities in their canonical form, and never left out."""
    if env.value_from is None:
        return env
    source = deepcopy(env.value_from)
    round_trip(source, load_schema(version).type_named("core/v1.EnvVarSource"))
    return replace(env, value_from=source)


def merged_variables(*lists: tuple[Variable, ...]) -> tuple[Variable, ...]:
    """Return the variables sorted by name; a later one of the same name replaces an earlier."""
    by_name = {each.variable.name: each for variables in lists for each in variables}
    return tuple(by_name[name] for name in sorted(by_name))
