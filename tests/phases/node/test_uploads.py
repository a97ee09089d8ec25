"""What nodes that join find in the cluster, as plans: the description of the cluster, and shared certificates."""

from garboard.engine import Plan, PutObject, ShowMessage
from garboard.model.paths import ADMIN_CONF
from garboard.node.interpreters.objects import unnamed_owners
from garboard.phases import plan_workflow, select
from garboard.phases.init import INIT, InitContext, InitOptions
from tests.support.phases.machines import CONFIG, MemoryMachine, context_on

KEY = "00" * 32


def plan(context: InitContext, only: str) -> Plan:
    return plan_workflow(select(INIT, only=only), context)


def test_certificates_are_shared_only_when_asked_for() -> None:
    planned = plan(context_on(MemoryMachine()), "upload-certs")
    assert planned.steps == ()
    assert [note.text for note in planned.notes] == ["Skipping phase. Please see --upload-certs"]


def sharing(text: str = CONFIG, *, shows_join_command: bool = False, prints_certificate_key: bool = True) -> Plan:
    options = InitOptions(
        uploads_certs=True,
        certificate_key=KEY,
        shows_join_command=shows_join_command,
        prints_certificate_key=prints_certificate_key,
    )
    return plan(context_on(MemoryMachine(), text, options=options), "upload-certs")


def test_shared_files_are_sealed_when_they_are_there_and_owned_by_a_token_that_ends() -> None:
    token, secret, *rbac = [step.action for step in sharing().steps if isinstance(step.action, PutObject)]
    assert token.name.startswith("bootstrap-token-")
    assert isinstance(secret.content, dict)
    assert [each.path for each in secret.fillings] == [
        f"/etc/kubernetes/pki/{name}"
        for name in ("ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "sa.pub", "sa.key", "etcd/ca.crt",
                     "etcd/ca.key")
    ]  # fmt: skip
    assert all(each.key == bytes(32) and not each.is_needed for each in secret.fillings)
    assert "etcd-ca.key" in str(secret.content["data"])
    (owner,) = unnamed_owners(secret.content)
    assert owner["name"] == token.name
    assert [each.kind for each in rbac] == ["Role", "RoleBinding"]


def test_the_key_is_in_no_printed_plan_and_no_repr() -> None:
    planned = sharing()
    assert KEY not in repr(planned)
    assert "\\x00\\x00\\x00" not in repr(planned)


def test_the_key_is_shown_once_and_not_at_all_if_that_was_asked() -> None:
    (told,) = [step.action for step in sharing().steps if isinstance(step.action, ShowMessage)]
    assert KEY in told.text
    for planned in (sharing(shows_join_command=True), sharing(prints_certificate_key=False)):
        assert not any(isinstance(step.action, ShowMessage) for step in planned.steps)


def test_external_etcd_shares_its_own_files() -> None:
    etcd = "etcd: {external: {endpoints: ['https://e:2379'], caFile: /e/ca, certFile: /e/crt, keyFile: /e/key}}"
    planned = sharing(CONFIG.replace("kubernetesVersion", f"{etcd}\nkubernetesVersion"))
    secret = planned.steps[1].action
    assert isinstance(secret, PutObject)
    assert [each.path for each in secret.fillings][-3:] == ["/e/ca", "/e/crt", "/e/key"]


def test_cluster_info_names_the_cluster_of_the_kubeconfig() -> None:
    machine = MemoryMachine({"/pki/ca.crt": b"the CA"})
    machine.files[ADMIN_CONF] = b"""
clusters: [{name: a, cluster: {server: 'https://other:1', certificate-authority: /pki/ca.crt}}]
contexts: [{name: c, context: {cluster: a, user: b}}]
current-context: c
"""
    planned = plan(context_on(machine), "bootstrap-token")
    contents = [step.action.content for step in planned.steps if isinstance(step.action, PutObject)]
    text = next(str(each) for each in contents if "cluster-info" in str(each))
    assert "certificate-authority-data: dGhlIENB" in text
    assert "server: https://other:1" in text
