"""An installer that is a program, such as openshift-install: driven by its name, in its working directory."""

from collections.abc import Mapping
from pathlib import Path

from garboard.fleet.installers.contract import CREATE_CLUSTER, DESTROY_CLUSTER, InstallerFailed, Verb
from garboard.fleet.provision import OutputScrubber, ScrubbedLines
from garboard.host.piped import run_piped
from garboard.node.reporter import Reporter
from garboard.values import dataclass

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class InstallerTimes:
    """How long verbs may take, with all that a program starts."""

    render_s: float = _HOUR_S / 4
    cluster_s: float = 3 * _HOUR_S


class ProgramInstaller:
    """Runs `PROGRAM VERB` with the folder as working directory; a program that was killed is never gone on with.

    `lock` is the descriptor of the work folder's lock: the program holds it too, so that nobody begins anything while
    it goes on without us.
    """

    resumes = False

    def __init__(
        self,
        program: str,
        reporter: Reporter,
        scrubber: OutputScrubber,
        *,
        environment: Mapping[str, str],
        lock: int,
        times: InstallerTimes | None = None,
    ) -> None:
        self.name = program
        self._reporter, self._scrubber = reporter, scrubber
        self._environment, self._lock = environment, lock
        self._times = times or InstallerTimes()

    def run(self, verb: Verb, folder: Path) -> None:
        def report(line: str) -> None:
            self._reporter.report(f"[{verb}] {line}")

        # Both streams may say a secret; each has lines of its own.
        lines = {name: ScrubbedLines(self._scrubber, report) for name in ("stdout", "stderr")}
        timeout_s = self._times.cluster_s if verb in (CREATE_CLUSTER, DESTROY_CLUSTER) else self._times.render_s
        status = run_piped(
            (self.name, *verb.split()),
            lambda name, data: lines[name].feed(data),
            timeout_s=timeout_s,
            cwd=folder,
            env=self._environment,
            keep=(self._lock,),
        )
        for each in lines.values():
            each.end()
        if status == 0:
            return
        ended = f"did not end within {timeout_s:.0f} s" if status is None else f"ended with status {status}"
        raise InstallerFailed(
            verb, f"{Path(self.name).name} {verb} {ended}", hint="what it said is above and in the log", status=status
        )
