"""`config validate` and `config migrate`: every kubeadm document of a file, strictly."""

from garboard.config.load import ConfigFile, Loaded
from garboard.config.printing import Configuration, configuration_text, joined
from garboard.config.reading import check_known
from garboard.values import dataclass


@dataclass(frozen=True, slots=True)
class Checked:
    """What a file holds, all of it valid, and what there is to say about it."""

    configs: tuple[Configuration, ...]
    warnings: tuple[str, ...]


def check_file(file: ConfigFile) -> Checked:
    """Load everything in a file that a command could use; kinds that nobody knows are refused."""
    check_known(file.documents, file.version.facts, file.options)
    loaded = tuple(_loaded(file))
    return Checked(
        tuple(each.config for each in loaded),
        tuple(dict.fromkeys(warning for each in loaded for warning in each.warnings)),
    )


def migrated_text(checked: Checked, file: ConfigFile) -> str:
    """Print what was loaded in the API version that the minor writes; component configurations are not carried over."""
    return joined(configuration_text(config, file.version.facts) for config in checked.configs)


def _loaded(file: ConfigFile) -> list[Loaded[Configuration]]:
    found: list[Loaded[Configuration]] = []
    if file.kinds & {"InitConfiguration", "ClusterConfiguration"}:
        found.append(file.init())
    if "JoinConfiguration" in file.kinds:
        found.append(file.join())
    if "ResetConfiguration" in file.kinds:
        found.append(file.reset())
    if "UpgradeConfiguration" in file.kinds:
        found.append(file.upgrade())
    return found
