"""A control-plane Pod as its component sees it: the main container, its flags, and the files that it mounts."""

from collections.abc import Iterator, Mapping

from garboard.rules.command_line import CommandLine, Word, read_words
from garboard.rules.fields import DocumentField
from garboard.schema import Schema
from garboard.values import dataclass

_FILE_TYPES = ("File", "FileOrCreate", "Socket", "CharDevice", "BlockDevice")
_FOLDER_TYPES = ("Directory", "DirectoryOrCreate")


@dataclass(frozen=True, slots=True)
class Mount:
    """A mount with the hostPath behind it."""

    at: DocumentField
    path: str
    host_path: str
    type: str  # of the hostPath
    volume: DocumentField

    @property
    def below(self) -> str:
        """The part of the volume that is shown, if it is not all of it."""
        return self.at["subPath"].text or self.at["subPathExpr"].text

    @property
    def is_file(self) -> bool:
        return self.type in _FILE_TYPES

    @property
    def is_folder(self) -> bool:
        return self.type in _FOLDER_TYPES


@dataclass(frozen=True, slots=True)
class ComponentPod:
    """The Pod of a component; its main container is called as the component."""

    spec: DocumentField
    component: str
    schema: Schema

    @property
    def main(self) -> DocumentField | None:
        containers = self.spec["containers"].elements()
        named = (each for each in containers if each["name"].text == self.component)
        return next(named, None)

    @property
    def program(self) -> str:
        """The name of the program that the main container runs, without its folder."""
        words = self.main["command"].words if self.main else ()
        return words[0].rpartition("/")[2] if words else ""

    @property
    def line(self) -> CommandLine | None:
        """The flags of the component, if the main container runs it."""
        options = self.schema.component(self.component)
        if self.main is None or options is None or self.program != self.component:
            return None
        command, args = self.main["command"], self.main["args"]
        words = [(each.value, each.path) for each in (*command.elements()[1:], *args.elements())]
        flags = tuple(each for each in read_words(words, options, self.component) if isinstance(each, Word))
        return CommandLine(options, self.component, flags, command.path)

    def mounts(self) -> Iterator[Mount]:
        """Yield the mounts of the main container."""
        volumes: Mapping[str, DocumentField] = {each["name"].text: each for each in self.spec["volumes"].elements()}
        for mount in self.main["volumeMounts"].elements() if self.main else ():
            volume = volumes.get(mount["name"].text, DocumentField(None))
            path = volume["hostPath"]
            yield Mount(mount, mount["mountPath"].text, path["path"].text, path["type"].text, volume)
