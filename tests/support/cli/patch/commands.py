"""The patch commands over one workplace of files, for tests that spoil one of the files."""

from dataclasses import dataclass
from pathlib import Path

POD = """apiVersion: v1
kind: Pod
metadata:
  name: kube-apiserver
spec:
  containers:
  - name: kube-apiserver
    image: registry.example/kube-apiserver:v1.37.1
    command:
    - kube-apiserver
    - --profiling=true
"""
EDITED = POD.replace("--profiling=true", "--profiling=false")
PATCH = "spec:\n  priority: 7\n"
PATCH_SET = "apiVersion: garboard.dev/v1alpha1\nkind: PatchSet\npatches:\n- {target: {kind: Pod}, file: patch.yaml}\n"


@dataclass(frozen=True, slots=True)
class Workplace:
    """A folder with an original, an edit of it, a patch, a patch directory with a marker, and a patch set."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> "Workplace":
        (folder / "patches" / "common").mkdir(parents=True)
        (folder / "original.yaml").write_text(POD)
        (folder / "edited.yaml").write_text(EDITED)
        (folder / "patch.yaml").write_text(PATCH)
        (folder / "patches" / "garboard.yaml").write_text("")
        (folder / "patches" / "kube-apiserver.yaml").write_text(PATCH)
        (folder / "set.yaml").write_text(PATCH_SET)
        return cls(folder)

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def commands(self) -> dict[str, list[str]]:
        """Every way to read each file; all of them succeed on the files as made."""
        original = ["-f", self.path("original.yaml")]
        patch_file = [*original, "--patch-file", self.path("patch.yaml")]
        directory = [*original, "--target", "kube-apiserver", "--patches", self.path("patches")]
        pair = ["--original", self.path("original.yaml"), "--modified", self.path("edited.yaml")]
        return {
            "apply": ["patch", "apply", *patch_file],
            "apply merge": ["patch", "apply", "--type", "merge", *patch_file],
            "apply compat": ["patch", "apply", "--compat", "--kind", "Pod", *patch_file],
            "apply target": ["patch", "apply", *directory],
            "apply target compat": ["patch", "apply", "--compat", *directory],
            "apply set": ["patch", "apply", *original, "--patch-set", self.path("set.yaml")],
            "diff": ["patch", "diff", *directory],
            "explain": ["patch", "explain", "spec.priority", *directory],
            "compile": [
                "patch",
                "compile",
                *original,
                "--patches",
                self.path("patches"),
                "--out",
                self.path("compiled"),
            ],
            "create": ["patch", "create", *pair],
            "capture": ["patch", "capture", *pair, "--out", self.path("captured.yaml")],
        }

    def contents(self) -> dict[str, bytes]:
        """Return what every regular file holds, to see that a refused command wrote nothing."""
        return {str(path): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}


READERS = {
    "original.yaml": (
        "apply", "apply merge", "apply compat", "apply target", "apply target compat", "apply set", "diff", "explain",
        "create", "capture",
    ),
    "patch.yaml": ("apply", "apply merge", "apply compat", "apply set"),
    "patches/kube-apiserver.yaml": ("apply target", "apply target compat", "diff", "explain"),
    "patches/garboard.yaml": ("apply target", "apply target compat", "diff", "explain"),
    "set.yaml": ("apply set",),
    "edited.yaml": ("create", "capture"),
}  # fmt: skip
