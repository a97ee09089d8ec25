"""Static pods and kubelet files: what the real kubeadm writes and what we render, byte for byte, mode for mode."""

from pathlib import Path

import pytest

from garboard.errors import GarboardError
from tests.support.parity.comparing import differences
from tests.support.parity.kubeadm import Kubeadm
from tests.support.parity.node_run import NODE_PHASES, Configuration, all_configurations, kept_node_files
from tests.support.parity.rendering import Rendered, host_of, load, render_node

pytestmark = pytest.mark.real
each_configuration = pytest.mark.parametrize("configuration", all_configurations(), ids=lambda each: each.name)


def rendered(configuration: Configuration, kubeadm: Kubeadm, root: Path) -> Rendered:
    """Render a configuration; one that is refused makes every phase fail."""
    try:
        loaded = load(configuration, kubeadm.version)
    except GarboardError as error:
        return Rendered(failures=dict.fromkeys(NODE_PHASES, error))
    host = host_of(configuration, configuration.machine(root, kubeadm.version))
    return render_node(loaded, host, configuration.patches)


@each_configuration
def test_files_of_a_node_are_kubeadms(kubeadm: Kubeadm, tmp_path: Path, configuration: Configuration) -> None:
    theirs = kept_node_files(kubeadm, configuration, tmp_path / "theirs")
    ours = rendered(configuration, kubeadm, tmp_path / "ours")
    assert sorted(ours.failures) == sorted(theirs.failures), (ours.failures, theirs.failures)
    assert differences(ours.files, theirs.files) == ""
    assert configuration.is_refused_by(kubeadm.version) == bool(theirs.failures)
