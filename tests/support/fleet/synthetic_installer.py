#!/usr/bin/python3 -SE
"""A synthetic installer: not openshift-install, but a program of ours that keeps the same contract.

It writes a tree of the shape that openshift-install writes, with made-up contents, and its cloud is the folder $CLOUD.
What it does wrong is in $MISBEHAVE, words such as `fail:create-cluster`, `kill:create-cluster` (its provisioner, in the
middle), `no-infra-id`, `same-infra-id`, `slow:create-cluster`.
"""

import json
import os
import secrets
import signal
import sys
import time
from pathlib import Path

OBJECTS = {
    "manifests/cluster-config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cluster-config}\n",
    "manifests/cluster-network-02-config.yml": "apiVersion: config/v1\nkind: Network\nspec: {type: x}\n",
    "openshift/99_worker-machineset-0.yaml": "apiVersion: m/v1\nkind: MachineSet\nspec: {replicas: 1}\n",
    "cluster-api/02_infra-cluster.yaml": "apiVersion: c/v1\nkind: InfraCluster\nmetadata: {name: infra}\n",
    ".openshift_install_state.json": "{}\n",
    "tls/root-ca.key": "made up\n",
}
PASSWORD = "AbCdE-fGhIj-KlMnO-pQrSt"


def main(verb: str) -> int:
    said = os.environ.get("MISBEHAVE", "").split()
    print(f'level=info msg="{verb} begins"', flush=True)
    print(f"environment: {os.environ.get('SAY', '')}", file=sys.stderr, flush=True)
    cloud, name = Path(os.environ["CLOUD"]), verb.replace(" ", "-")
    (cloud / "calls").open("a").write(f"{verb}\n")
    if f"fail:{name}" in said:
        print('level=fatal msg="the cloud says no; password is hunter2hunter2"', flush=True)
        return 3
    VERBS[verb](cloud, said)
    login = f", login kubeadmin {PASSWORD}" if verb == "create cluster" else ""
    print(f'level=info msg="{verb} done{login}"', flush=True)
    return 0


def create_manifests(_cloud: Path, said: list[str]) -> None:
    if not Path("install-config.yaml").exists():
        sys.exit("no install-config.yaml")
    for path, text in OBJECTS.items():
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(text)
    if "link" in said:
        Path("manifests/link.yaml").symlink_to(os.environ["LINK_TO"])
    Path("install-config.yaml").unlink()


def create_ignition_configs(_cloud: Path, said: list[str]) -> None:
    seen = {path: Path(path).read_text() for path in OBJECTS if path.endswith(("yaml", "yml"))}
    for path in seen:
        Path(path).unlink()
    Path("auth").mkdir()
    if "no-kubeconfig" not in said:
        Path("auth/kubeconfig").write_text("apiVersion: v1\nkind: Config\n")
    Path("auth/kubeadmin-password").write_text(PASSWORD)
    Path("bootstrap.ign").write_text(json.dumps(seen))
    infra = "c1-fixed" if "same-infra-id" in said else f"c1-{secrets.token_hex(3)}"
    found = {"infraID": "" if "no-infra-id" in said else infra, "clusterID": "1", "clusterName": "c1"}
    Path("metadata.json").write_text(json.dumps({**found, "cloud": {"userName": "x", "password": "pass-in-metadata"}}))


def create_cluster(cloud: Path, said: list[str]) -> None:
    infra = json.loads(Path("metadata.json").read_text())["infraID"]
    for number in range(3):
        (cloud / f"{infra}-{number}").write_text(Path("bootstrap.ign").read_text())
        if number == 1 and "kill:create-cluster" in said:
            os.kill(os.getppid(), signal.SIGKILL)
        if "slow:create-cluster" in said:
            time.sleep(0.5)
        if number == 1 and "half:create-cluster" in said:
            sys.exit(4)


def destroy_cluster(cloud: Path, _said: list[str]) -> None:
    infra = json.loads(Path("metadata.json").read_text())["infraID"]
    assert [each.name for each in Path().iterdir()] == ["metadata.json"], "the folder is a new one"
    for each in cloud.glob(f"{infra}-*"):
        each.unlink()


VERBS = {
    "create manifests": create_manifests,
    "create ignition-configs": create_ignition_configs,
    "create cluster": create_cluster,
    "destroy cluster": destroy_cluster,
}

if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:])))
