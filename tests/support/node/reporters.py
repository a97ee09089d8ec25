"""A reporter that remembers."""

from dataclasses import dataclass, field


@dataclass
class MemoryReporter:
    """Keeps what a run says; `answers` are those of the user, in their order."""

    lines: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)

    def report(self, line: str, /) -> None:
        self.lines.append(line)

    def show(self, text: str, /) -> None:
        self.shown.append(text)

    def ask(self, question: str, /) -> str:
        self.lines.append(question)
        return self.answers.pop(0) if self.answers else ""
