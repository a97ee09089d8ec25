"""A control-plane node in two folders in memory: its certificates and its kubeconfigs."""

from garboard.pki import KUBECONFIGS
from garboard.pki.credentials import kubeconfig_file, observe_kubeconfig
from garboard.pki.expiration import ObservedNode
from garboard.pki.files import Folder, write_files
from garboard.pki.store import observe_pairs
from tests.support.pki.fixtures import INPUTS, KEYS, NOW, MemoryFolder, full_folder


def observe(pki: Folder, conf: Folder) -> ObservedNode:
    return ObservedNode(
        observe_pairs(pki), {spec.file_name: observe_kubeconfig(conf, spec.file_name) for spec in KUBECONFIGS}
    )


def full_node() -> tuple[MemoryFolder, MemoryFolder]:
    pki, conf = full_folder(), MemoryFolder(prefix="/etc/kubernetes")
    ca = observe_pairs(pki)["ca"].as_signer()
    assert ca is not None
    write_files(conf, [kubeconfig_file(spec, INPUTS, ca, KEYS, NOW) for spec in KUBECONFIGS])
    return pki, conf
