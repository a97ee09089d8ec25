"""Images before they are needed: which of them the runtime shall pull, and how."""

from collections.abc import Iterator

from garboard.engine import Note, PullImage, Step
from garboard.model.cluster import ClusterConfiguration
from garboard.model.images import control_plane_images
from garboard.model.node import NodeRegistration
from garboard.phases.preflight.exam import Exam

CHECK = "ImagePull"
_CAUSE = "the control plane starts faster with it, or fails now"


def plan_images(
    cluster: ClusterConfiguration, registration: NodeRegistration, exam: Exam, ignored: frozenset[str]
) -> Iterator[Step | Note]:
    """Plan to pull what is missing, one after the other or side by side, as `imagePullSerial` says."""
    policy = registration.image_pull_policy
    if policy == "Never":
        yield Note("imagePullPolicy is Never: no image is pulled")
        return
    is_always = policy == "Always"
    images = control_plane_images(cluster)
    wanted = [each for each in images if is_always or not exam.has_image(registration.cri_socket, each)]
    is_needed = not ignored & {"all", CHECK.lower()}
    if len(wanted) < len(images):
        yield Note(f"{len(images) - len(wanted)} of {len(images)} images are there")
    groups = [(each,) for each in wanted] if registration.image_pull_serial else [tuple(wanted)] if wanted else []
    for first, *beside in groups:
        action = PullImage(image=first, beside=tuple(beside), is_always=is_always, is_needed=is_needed)
        yield Step(action, _CAUSE)
