"""Write src/garboard/schema/data from the Go types and programs of every supported Kubernetes release.

    make schema                     all of it
    python -m tools.schema.generate --check --only types --version v1.37.1

Needs Go and a module proxy. Equal input gives equal content; a file whose content did not change is left alone.
"""

import argparse
import json
import sys
import tempfile
import zlib
from pathlib import Path

from garboard.model import SUPPORTED_VERSIONS, KubernetesVersion
from garboard.model.minors import facts_of
from tools.schema.gomodule import GoModule, etcd_module, kubernetes_module

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "src/garboard/schema/data"
KUBERNETES_COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet")


def etcd_version(version: KubernetesVersion) -> str:
    """Return the release of etcd that kubeadm of the minor starts: its image's tag without the image's own revision."""
    return "v" + facts_of(version).etcd_tag.partition("-")[0]


def generate_types(module: GoModule) -> bytes:
    found = json.loads(module.run("types"))
    return _compact({"roots": found["roots"], "self_written": found["self"], "types": found["types"]})


def generate_flags(kubernetes: GoModule, etcd: GoModule) -> bytes:
    components = {name: json.loads(kubernetes.run(f"flags/{name}")) for name in KUBERNETES_COMPONENTS}
    components["etcd"] = json.loads(etcd.run("flags/etcd"))
    return _compact(components)


def _compact(content: object) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def put(path: Path, content: bytes, *, check: bool) -> bool:
    """Store `content` compressed; return whether the file differed. With `check` nothing is written."""
    same = path.exists() and zlib.decompress(path.read_bytes()) == content
    if not same and not check:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zlib.compress(content, 9))
    print(f"{path.relative_to(DATA)}: {len(content)} bytes, {'unchanged' if same else 'changed'}")
    return not same


def generate(version: KubernetesVersion, work: Path, only: str, *, check: bool) -> bool:
    """Bring the data of one minor up to date; return whether anything differed."""
    kubernetes = kubernetes_module(str(version), HERE, work / str(version))
    target = DATA / f"v{version.as_minor}"
    changed = False
    if only in ("types", "all"):
        changed |= put(target / "types.json.z", generate_types(kubernetes), check=check)
    if only in ("flags", "all"):
        etcd = etcd_module(etcd_version(version), HERE, work / f"etcd-{version.as_minor}")
        changed |= put(target / "flags.json.z", generate_flags(kubernetes, etcd), check=check)
    return changed


def write_manifest() -> None:
    sources = {
        f"v{version.as_minor}": {"kubernetes": str(version), "etcd": etcd_version(version)}
        for version in SUPPORTED_VERSIONS
    }
    (DATA / "manifest.json").write_text(json.dumps(sources, indent=2) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the shipped data differs")
    parser.add_argument("--only", choices=("all", "types", "flags"), default="all")
    parser.add_argument("--version", type=KubernetesVersion.parse, action="append", help="one release, not all")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="garboard-schema-") as work:
        versions = options.version or SUPPORTED_VERSIONS
        changed = [generate(version, Path(work), options.only, check=options.check) for version in versions]
    if not options.check:
        write_manifest()
    return 1 if options.check and any(changed) else 0


if __name__ == "__main__":
    sys.exit(main())
