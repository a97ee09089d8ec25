import pytest

from garboard.manifests.api_server import authorization_warnings
from garboard.model.cluster import ClusterConfiguration
from garboard.model.component import ApiServer, Arg
from tests.support.manifests.nodes import node


@pytest.mark.parametrize(
    ("args", "warnings"),
    [
        ((), ()),
        ((Arg("authorization-mode", "Node,RBAC"),), ()),
        (
            (Arg("authorization-mode", "RBAC,Foo"),),
            (
                'ignoring unknown kube-apiserver authorization-mode "Foo"',
                'the default kube-apiserver authorization-mode is "Node,RBAC"; using "RBAC"',
            ),
        ),
        ((Arg("authorization-mode", ",Webhook", "append"),), ()),
        ((Arg("authorization-mode", "Foo"), Arg("authorization-config", "/x")), ()),
    ],
)
def test_unusual_authorization_is_remarked_on(args: tuple[Arg, ...], warnings: tuple[str, ...]) -> None:
    cluster = ClusterConfiguration(api_server=ApiServer(extra_args=args))
    assert authorization_warnings(node(cluster)) == warnings
