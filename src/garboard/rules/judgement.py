"""What Kubernetes takes and we do not: flags without effect, files that no mount holds, contradictory hostPaths."""

from collections.abc import Sequence

from garboard.model.go import BOOLEANS
from garboard.rules.command_line import CommandLine, find_flag
from garboard.rules.control_plane import ComponentPod, Mount
from garboard.rules.findings import Found, ResultFinding
from garboard.rules.probes import check_probes

# Flags that name files or folders, by the ends of their names.
_FILE_ENDS = ("-file", "-cafile", "-certfile", "-keyfile", "-config", "-path", "-certificate", "-key", "kubeconfig")
_FILE_FLAGS = ("allow-metric-labels-manifest", "config", "kubelet-certificate-authority")
_FOLDER_FLAGS = ("data-dir", "wal-dir")
_NO_FILES = ("tls-sni-cert-key",)  # a pair of them, looked at on its own
_WRITTEN = ("audit-log-path", "data-dir", "debug-socket-path", "wal-dir")
_KEPT = ("data-dir", "wal-dir")  # also when the Pod goes
_NO_PATHS = ("-",)  # the standard output
_OF_EVERY_CONTAINER = ("/dev/", "/proc/", "/tmp/")
_FILE_SUFFIXES = (".conf", ".crt", ".json", ".key", ".log", ".pem", ".pub", ".sock", ".yaml", ".yml")
_REPEATABLE = ("stringArray", "stringSlice", "namedCertKey", "mapStringString", "stringToString", "mapStringBool")


def check_component(pod: ComponentPod) -> Found:
    """Yield what a component would start with, and should not."""
    mounts = tuple(pod.mounts())
    yield from _check_types(mounts)
    line = pod.line
    if line is None:
        return
    yield from _check_endings(line)
    yield from _check_repeats(line)
    yield from _check_audit(line)
    yield from check_probes(pod)
    for word in line.all("tls-sni-cert-key"):
        for path in (word.value or "").partition(":")[0].split(","):
            yield from _check_file(word.name, path, word.at, mounts)
    for word in line.flags:
        if word.value and word.value not in _NO_PATHS and _names_file(word.name, line) and "$(" not in word.value:
            yield from _check_file(word.name, word.value, word.at, mounts)


def _check_endings(line: CommandLine) -> Found:
    for name in ("help", "version", "write-config-to"):
        word = line.last(name)
        if word is not None and (word.value is None or BOOLEANS.get(word.value, bool(word.value))):
            yield line.finding("program-ends", name, "the program does this, and ends")


def _names_file(name: str, line: CommandLine) -> bool:
    flag = find_flag(name, line.options, line.program)
    if flag is None or flag.type not in ("string", "stringArray"):  # --runtime-config is a list
        return False
    return name in (*_FILE_FLAGS, *_FOLDER_FLAGS) or (name.endswith(_FILE_ENDS) and name not in _NO_FILES)


def _check_repeats(line: CommandLine) -> Found:
    names: dict[str, int] = {}
    for word in line.flags:
        name = word.name if line.program == "etcd" else word.name.replace("_", "-")
        names[name] = names.get(name, 0) + 1
    for name, count in names.items():
        flag = line.options.flags.get(name)
        # Values of lists are joined, which is what a list in a +args patch asks for.
        is_list = (flag is not None and flag.type in _REPEATABLE) or name in ("vmodule", "tls-sni-cert-key")
        if count > 1 and not is_list:
            hint = "change the flag that is there, with a +args patch or `op: replace`"
            yield line.finding("repeated-flag", name, f"it stands {count} times, and only the last one counts", hint)


def _check_audit(line: CommandLine) -> Found:
    has_policy = bool(line.value("audit-policy-file"))
    backends = [name for name in ("audit-log-path", "audit-webhook-config-file") if line.value(name)]
    if has_policy and not backends:
        message = "there is neither --audit-log-path nor --audit-webhook-config-file: no event is recorded"
        yield line.finding("audit-without-backend", "audit-policy-file", message)
    if backends and not has_policy:
        message = "there is no --audit-policy-file: no event is recorded"
        yield line.finding("audit-without-backend", backends[0], message)


def _check_file(name: str, path: str, at: tuple[str | int, ...], mounts: Sequence[Mount]) -> Found:
    if not path.startswith("/"):
        hint = "name the file by its whole path in the container"
        yield ResultFinding("unmounted-file", at, f"--{name}: a relative path is looked for in the image", hint)
        return
    holding = [mount for mount in mounts if _holds(mount, path)]
    if not holding and path.startswith(_OF_EVERY_CONTAINER):
        return
    if not holding:
        hint = "add a hostPath volume and a volumeMount for it"
        yield ResultFinding("unmounted-file", at, f"--{name}: no mount of the container holds {path}", hint)
        return
    nearest = max(holding, key=lambda mount: len(mount.path))
    yield from _check_use(name, path, at, nearest)
    is_exact = nearest.path.rstrip("/") == path.rstrip("/")
    if is_exact and nearest.is_file and name in _FOLDER_FLAGS:
        message = f"{path} is a folder to --{name}, and its hostPath has the type {nearest.type}"
        yield nearest.volume["hostPath"]["type"].finding("host-path-type", message)
    if is_exact and nearest.is_folder and name not in _FOLDER_FLAGS:
        message = f"{path} is a file to --{name}, and its hostPath has the type {nearest.type}"
        yield nearest.volume["hostPath"]["type"].finding("host-path-type", message)
    elif not is_exact and nearest.is_file:
        message = f"--{name} looks for a file below {nearest.path}, whose hostPath has the type {nearest.type}"
        yield nearest.volume["hostPath"]["type"].finding("host-path-type", message)


def _check_use(name: str, path: str, at: tuple[str | int, ...], mount: Mount) -> Found:
    """Yield a mount that holds the file of a flag, and cannot be used for it."""
    if name in _WRITTEN and mount.at["readOnly"].is_true:
        message = f"--{name}: {path} is written, and the mount {mount.path} is read-only"
        yield ResultFinding("unusable-mount", at, message, "mount its folder without readOnly")
    if mount.volume["emptyDir"].is_given and (name in _KEPT or name not in _WRITTEN):
        message = f"--{name}: {mount.path} is an emptyDir, in which {path} does not exist"
        yield ResultFinding("unusable-mount", at, message, "use a hostPath volume")


def _holds(mount: Mount, path: str) -> bool:
    folder = mount.path.rstrip("/")
    return bool(mount.path) and (path.rstrip("/") == folder or path.startswith(f"{folder}/"))


def _check_types(mounts: Sequence[Mount]) -> Found:
    kinds: dict[str, Mount] = {}
    for mount in mounts:
        at = mount.volume["hostPath"]["type"]
        if mount.is_file and mount.host_path.endswith("/"):
            yield at.finding("host-path-type", f"{mount.host_path} is a folder, and the type is {mount.type}")
        if mount.is_folder and mount.host_path.endswith(_FILE_SUFFIXES):
            yield at.finding("host-path-type", f"{mount.host_path} looks like a file, and the type is {mount.type}")
        other = kinds.setdefault(mount.host_path.rstrip("/"), mount)
        if (other.is_file and mount.is_folder) or (other.is_folder and mount.is_file):
            yield at.finding("host-path-type", f"{mount.host_path} is of type {other.type} in another volume")
