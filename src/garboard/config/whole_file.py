"""`config validate` and `config migrate`: every kubeadm document of a file, strictly."""

from collections.abc import Callable, Iterable, Iterator

from garboard.config.component_configs import COMPONENT_KINDS
from garboard.config.component_rules import ConfigFinding, component_findings
from garboard.config.load import ConfigFile, Loaded
from garboard.config.printing import Configuration, configuration_text, joined
from garboard.config.problems import InvalidConfiguration, joined_hints
from garboard.config.reading import check_known
from garboard.config.sources import ConfigSource
from garboard.config.tunnel_document import TUNNEL_KIND
from garboard.errors import BadDocument
from garboard.model.lifecycle import InitConfiguration
from garboard.values import dataclass

_SHOWN_LINES = 5


@dataclass(frozen=True, slots=True)
class Checked:
    """The configurations of a file, all of them valid, and the warnings about them."""

    configs: tuple[Configuration, ...]
    warnings: tuple[str, ...]


Judge = Callable[[Loaded[InitConfiguration]], Iterable[ConfigFinding]]


def check_file(file: ConfigFile, judge: Judge | None = None) -> Checked:
    """Load everything in a file that a command could use; unknown kinds are refused.

    With `judge`, which knows what is rendered, what the components refuse is refused as well.
    """
    if not file.documents:
        raise BadDocument(
            f"{file.file}: nothing to {'migrate' if file.options.migrates else 'validate'}: the file holds no document",
            hint="begin with `garboard config print init-defaults`",
        )
    check_known(file.documents, file.version.facts, file.options)
    loaded, refused = _loaded(file)
    findings = _judged(file, loaded, judge) if judge is not None else ()
    errors = [str(each) for each in findings if not each.is_warning]
    if refused or errors:
        lines = [line for each in refused for line in each.problems]
        raise InvalidConfiguration(file.file, [*lines, *errors], hint=joined_hints(refused))
    warnings = [warning for each in loaded for warning in each.warnings]
    warnings += [str(each) for each in findings if each.is_warning]
    return Checked(tuple(each.config for each in loaded), tuple(dict.fromkeys(warnings)))


def _judged(file: ConfigFile, loaded: Iterable[Loaded[Configuration]], judge: Judge) -> tuple[ConfigFinding, ...]:
    """Return what the components refuse: field by field, and in what is rendered if the configuration can be."""
    version = file.version
    found = [
        each
        for document in file.documents
        for each in component_findings(document, version.facts, version.facts.reference, file.options)
    ]
    told = {(each.code, each.message) for each in found}
    for each in loaded:
        if isinstance(each.config, InitConfiguration):
            init = Loaded(config=each.config, sources=each.sources, components=each.components)
            found += [more for more in judge(init) if (more.code, more.message) not in told]
    return tuple(found)


def migrated_text(checked: Checked, file: ConfigFile) -> str:
    """Print what was loaded in the API version that the minor writes; component configurations are not carried over."""
    return joined(configuration_text(config, file.version.facts) for config in checked.configs)


def left_out(file: ConfigFile) -> tuple[str, ...]:
    """Say what of a file `migrated_text` does not print, with its lines."""
    components = [
        f"{file.file}: {document.gvk.kind} (line {document.source.line}) is left out: component configurations are not "
        "migrated; copy it into the new file"
        for document in file.documents
        if document.gvk.kind in COMPONENT_KINDS
    ]
    components += [
        f"{file.file}: {document.gvk.kind} (line {document.source.line}) is left out: it is garboard's own; copy it "
        "into the new file"
        for document in file.documents
        if document.gvk == TUNNEL_KIND
    ]
    comments = [number for document in file.documents for number in _comment_lines(document.source)]
    lines = "line" if len(comments) == 1 else "lines"
    shown = ", ".join(map(str, comments[:_SHOWN_LINES])) + (", …" if len(comments) > _SHOWN_LINES else "")
    return (*components, *([f"{file.file}: comments are left out ({lines} {shown})"] if comments else ()))


def _comment_lines(source: ConfigSource) -> Iterator[int]:
    """Yield the lines of a document that hold nothing but a comment."""
    for number, line in enumerate(source.text.splitlines(), start=source.line):
        if line.lstrip().startswith("#"):
            yield number


def _loaded(file: ConfigFile) -> tuple[tuple[Loaded[Configuration], ...], tuple[InvalidConfiguration, ...]]:
    """Load what the kinds of a file are for; return what is wrong with the others."""
    loaders: tuple[tuple[set[str], Callable[[], Loaded[Configuration]]], ...] = (
        ({"InitConfiguration", "ClusterConfiguration"}, file.init),
        ({"JoinConfiguration"}, file.join),
        ({"ResetConfiguration"}, file.reset),
        ({"UpgradeConfiguration"}, file.upgrade),
    )
    found: list[Loaded[Configuration]] = []
    refused: list[InvalidConfiguration] = []
    for kinds, load in loaders:
        try:
            found += [load()] if file.kinds & kinds else []
        except InvalidConfiguration as error:
            refused.append(error)
    return tuple(found), tuple(refused)
