"""All Go programs that tests compare with, beside the lab's own; `python -m tools.harness.oracles` builds them.

`make programs` does so before the tests, each of which has a limit of time, and then drops the build cache.
"""

import sys
import time
from pathlib import Path

from garboard.host import Machine
from garboard.lab.binaries import Binaries
from garboard.model import DEFAULT_VERSION, SUPPORTED_VERSIONS, KubernetesVersion
from tools.harness.answers import sources_digest
from tools.harness.go_programs import (
    GoProgram,
    build_command,
    program_against,
    program_in,
    remove_unused,
    tests_of,
)
from tools.schema.gomodule import kubernetes_module

_ROOT = Path(__file__).parents[2]
_TESTS, _TOOLS = _ROOT / "tests", _ROOT / "tools"
STOCK_TUNNEL, STOCK_VERSION = "sigs.k8s.io/apiserver-network-proxy", "v0.36.0"
_PATCH_MODULES = ("api", "apimachinery", "client-go", "kubelet", "kube-proxy")


def documents_oracle() -> GoProgram:
    return program_in("documents", _TESTS / "documents/oracle")


def grpc_go() -> GoProgram:
    return program_in("grpc-go", _TESTS / "rpc/grpc_go")


def proxies_oracle() -> GoProgram:
    modules = {"golang.org/x/net": "v0.57.0", "golang.org/x/text": "v0.40.0"}
    return program_against("httpproxy", _TESTS / "net/httpproxy/oracle", modules)


def glob_oracle() -> GoProgram:
    return program_against("glob", _TESTS / "fleet/customize/oracle", {})


def patches_oracle(version: KubernetesVersion) -> GoProgram:
    modules = {f"k8s.io/{name}": f"v0.{version.minor}.{version.patch}" for name in _PATCH_MODULES}
    modules["gopkg.in/evanphx/json-patch.v4"] = "v4.13.0"
    return program_against("patches", _TESTS / "patches/oracle", modules)


def stock_client() -> GoProgram:
    modules = {f"{STOCK_TUNNEL}/konnectivity-client": STOCK_VERSION, "google.golang.org/grpc": "v1.80.0"}
    return program_against("stock-client", _TESTS / "tunnel/stock_client/oracle", modules)


def stock_metrics() -> GoProgram:
    modules = {STOCK_TUNNEL: STOCK_VERSION, f"{STOCK_TUNNEL}/konnectivity-client": STOCK_VERSION}
    return program_against("stock-metrics", _TESTS / "tunnel/stock_metrics/oracle", modules)


def stock_suite() -> GoProgram:
    return tests_of(STOCK_TUNNEL, "tests", STOCK_VERSION)


def schema_program(version: KubernetesVersion, package: str) -> GoProgram:
    """Return a program of tools/schema around the types of a release: `types` or `roundtrip`."""
    return _of_kubernetes(version, _TOOLS / "schema", package)


def judge(version: KubernetesVersion) -> GoProgram:
    """Return Kubernetes' own validation of a release, as a program."""
    return _of_kubernetes(version, _TOOLS / "validation", "judge")


def _of_kubernetes(version: KubernetesVersion, sources: Path, package: str) -> GoProgram:
    return GoProgram(
        f"{package}-{version}",
        sources_digest(sources, "*.go", "*.txt"),
        lambda folder: kubernetes_module(str(version), sources, folder),
        (build_command(f"./{package}"),),
    )


def all_programs() -> list[GoProgram]:
    """Return every program that `make test` and `make verify` ask."""
    once = [
        documents_oracle(),
        glob_oracle(),
        grpc_go(),
        proxies_oracle(),
        stock_client(),
        stock_metrics(),
        stock_suite(),
    ]
    once.append(schema_program(DEFAULT_VERSION, "types"))
    return once + [
        make
        for version in reversed(SUPPORTED_VERSIONS)
        for make in (patches_oracle(version), schema_program(version, "roundtrip"), judge(version))
    ]


def main() -> None:
    missing = [program for program in all_programs() if not program.path.exists()]
    if missing and Machine().find_program("go") is None:
        print("there is no `go` on PATH: tests that compare with Go programs will fail", file=sys.stderr)
        missing = []
    for program in missing:
        print(f"building {program.path.name}", file=sys.stderr, flush=True)
        program.built()
    remove_unused(time.time())
    binaries = Binaries(Machine())
    if binaries.cache.is_dir():
        binaries.drop_build_cache()


if __name__ == "__main__":
    main()
