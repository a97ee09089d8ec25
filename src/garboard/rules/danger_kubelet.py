"""What a node loses when the configuration of its kubelet is changed."""

from garboard.documents import Json
from garboard.model.addresses import parse_ip
from garboard.rules.fields import DocumentField
from garboard.rules.findings import Found, ResultFinding


def weakened_kubelet(before: Json, after: Json) -> list[ResultFinding]:
    """Return what a node loses when the configuration of its kubelet changes from `before` to `after`."""
    old, new = DocumentField(before), DocumentField(after)
    return [
        *_check_work(old, new),
        *_check_reach(old, new),
        *_check_names(old, new),
        *_check_authentication(old, new),
    ]


def _check_work(old: DocumentField, new: DocumentField) -> Found:
    if old["staticPodPath"].text and old["staticPodPath"].text != new["staticPodPath"].text:
        yield new["staticPodPath"].finding("static-pods-off", f"it was {old['staticPodPath'].text}")
    if old["rotateCertificates"].is_true and not new["rotateCertificates"].is_true:
        yield new["rotateCertificates"].finding("rotation-off", "the certificate of the kubelet will expire")


def _check_reach(old: DocumentField, new: DocumentField) -> Found:
    """Yield with what the cluster does not reach the kubelet any more."""
    for name, message in (
        ("registerNode", "the kubelet no longer makes its node known"),
        ("enableServer", "the kubelet serves no logs, no exec and no metrics"),
    ):
        if new[name].is_false and not old[name].is_false:
            yield new[name].finding("kubelet-unreachable", message)
    port = new["healthzPort"]
    if port.number == 0 and old["healthzPort"].number != 0:
        yield port.finding("kubelet-unreachable", "init, join and upgrade wait for the kubelet at this port")
    address = parse_ip(new["address"].text)
    if address is not None and address.is_loopback and old["address"].text != new["address"].text:
        yield new["address"].finding("kubelet-unreachable", "the API server does not reach it there")


def _check_names(old: DocumentField, new: DocumentField) -> Found:
    """Yield with what Pods of the node do not find Services any more."""
    for name in ("clusterDNS", "clusterDomain"):
        if old[name].value and not new[name].value:
            yield new[name].finding("cluster-dns-removed", "Pods of this node find no Service by its name")
    known = old["clusterDNS"].words
    for each in new["clusterDNS"].elements():
        if parse_ip(each.text) is None and each.text not in known:
            yield each.finding("cluster-dns-removed", "this is no IP address, and the kubelet leaves it out")
    domain = new["clusterDomain"]
    if old["clusterDomain"].text and domain.text and domain.text != old["clusterDomain"].text:
        message = "the DNS of the cluster answers for another domain"
        found = domain.finding("cluster-dns-removed", message)
        yield ResultFinding(found.code, found.path, found.message, "set networking.dnsDomain instead", True)


def _check_authentication(old: DocumentField, new: DocumentField) -> Found:
    authority = ("authentication", "x509", "clientCAFile")
    if old.at(*authority).text and old.at(*authority).text != new.at(*authority).text:
        yield new.at(*authority).finding("authentication-weakened", "it ties the kubelet to this cluster's clients")
    anonymous = new.at("authentication", "anonymous", "enabled")
    if anonymous.is_true and not old.at("authentication", "anonymous", "enabled").is_true:
        yield anonymous.finding("authentication-weakened", "requests without credentials are served")
    webhook = new.at("authentication", "webhook", "enabled")
    if webhook.is_false and not old.at("authentication", "webhook", "enabled").is_false:
        yield webhook.finding("authentication-weakened", "tokens are no longer verified")
    mode = new.at("authorization", "mode")
    if mode.text == "AlwaysAllow" and old.at("authorization", "mode").text != "AlwaysAllow":
        yield mode.finding("authorization-weakened", "with AlwaysAllow every request is allowed")
    if (new["readOnlyPort"].number or 0) > 0 and not old["readOnlyPort"].number:
        yield new["readOnlyPort"].finding("authentication-weakened", "this port asks for no credentials")
