"""What an upgrade takes from the API servers of a cluster: what is done already, and who comes last."""

from dataclasses import replace

import pytest

from garboard.phases.upgrade.context import UpgradeContext
from garboard.phases.upgrade.tree import plan_dns
from tests.support.phases.upgraded_nodes import TARGET, upgraded_node


def with_images(context: UpgradeContext, **images: str) -> UpgradeContext:
    """Return a node of a cluster with API servers of these images, by node, in which a dash is an underscore."""
    found = {name.replace("_", "-"): image for name, image in images.items()}
    return replace(context, upgraded=replace(context.upgraded, api_servers=found))


@pytest.mark.parametrize(
    ("image", "left"),
    [
        pytest.param(f"registry.k8s.io/kube-apiserver:{TARGET}", (), id="of the configuration"),
        pytest.param(f"mirror.example:5000/kube-apiserver:{TARGET}", (), id="patched to come from elsewhere"),
        pytest.param(f"mirror.example/kube-apiserver:{TARGET}@sha256:{'0' * 64}", (), id="with a digest"),
        pytest.param("registry.k8s.io/kube-apiserver:v1.36.4", ("node-2",), id="former"),
        pytest.param(f"registry.k8s.io/kube-apiserver:x{TARGET}", ("node-2",), id="another tag"),
    ],
)
def test_addons_follow_when_every_other_api_server_is_of_the_target(image: str, left: tuple[str, ...]) -> None:
    context = with_images(upgraded_node(is_first=False), node_1="any", node_2=image)
    assert context.control_planes_left == left
    notes = [getattr(each, "text", "") for each in plan_dns(context)] if left else []
    assert [each for each in notes if "still to come: node-2" in each] == notes


@pytest.mark.parametrize(("is_whole", "is_done"), [(True, True), (False, False)], ids=["whole", "one phase"])
def test_upgraded_cluster_has_nothing_to_do_unless_one_phase_is_asked_for(is_whole: bool, is_done: bool) -> None:
    context = with_images(upgraded_node(), node_1=f"mirror.example/kube-apiserver:{TARGET}")
    context = replace(
        context,
        upgraded=replace(context.upgraded, former=context.cluster),
        options=replace(context.options, is_whole=is_whole),
    )
    assert context.is_upgraded is is_done
