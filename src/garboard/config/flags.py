"""Command line flags that speak of the configuration: feature gates, and which flags go together with --config."""

from collections.abc import Iterable

from garboard.config.problems import Notes
from garboard.errors import BadUsage
from garboard.model.minors import LOCAL_MODE_GATE, MinorFacts

_BESIDE_CONFIG = frozenset({
    "config", "ignore-preflight-errors", "dry-run", "kubeconfig", "kubeconfig-dir", "node-name", "upload-certs",
    "print-manifest", "allow-missing-template-keys", "output", "show-managed-fields", "print-join-command", "rootfs",
    "v", "log-file", "yes",
    # garboard's own: they say how to read files, not what is in them.
    "strict-config", "strict-patches", "timings", "undo-on-failure", "diagnostics",
})  # fmt: skip
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")


def check_mixed_flags(given: Iterable[str]) -> None:
    """Refuse flags (by name, without dashes) that a configuration file would make pointless."""
    names = sorted(given)
    mixed = [name for name in names if name not in _BESIDE_CONFIG and not name.startswith("skip-")]
    if "config" in names and mixed:
        raise BadUsage(
            f"can not mix '--config' with arguments [{' '.join(mixed)}]",
            hint="put these settings into the configuration file, or drop --config",
        )


def parse_feature_gates(text: str, facts: MinorFacts, notes: Notes) -> dict[str, bool]:
    """Read `--feature-gates A=true,B=false`."""
    stages = {gate.name: gate.stage for gate in facts.feature_gates}
    gates: dict[str, bool] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise BadUsage(f"missing bool value for feature-gate key:{part}")
        if name not in stages and name != LOCAL_MODE_GATE:
            known = ", ".join(stages)
            raise BadUsage(f"unrecognized feature-gate key: {name}", hint=f"kubeadm {facts.minor} knows {known}")
        if stages.get(name) == "DEPRECATED":
            notes.warn(f"Setting deprecated feature gate {name}={value}. It will be removed in a future release.")
        if value not in _TRUE + _FALSE:
            raise BadUsage(f"invalid value {value} for feature-gate key: {name}, use true|false instead")
        gates[name] = value in _TRUE
    return gates
