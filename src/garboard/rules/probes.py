"""Probes of a component: whether it answers where and as they ask, and whether they wait long enough for it."""

from collections.abc import Iterator, Mapping

from garboard.documents import equal
from garboard.model.addresses import parse_ip
from garboard.rules.command_line import CommandLine
from garboard.rules.control_plane import ComponentPod
from garboard.rules.fields import DocumentField
from garboard.rules.findings import Found, ResultFinding
from garboard.rules.flag_etcd import urls_of
from garboard.rules.flag_values import whole_number
from garboard.values import dataclass

PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_DEFAULT_PORTS: Mapping[str, int] = {"kube-apiserver": 6443, "kube-controller-manager": 10257, "kube-scheduler": 10259}
_PATIENCE = 4  # of kubeadm's time, less than this part is too little


@dataclass(frozen=True, slots=True)
class Asked:
    """Where a probe asks over the network."""

    at: DocumentField
    scheme: str  # empty: any
    host: str  # empty: the address of the Pod
    port: int
    has_credentials: bool


def check_probes(pod: ComponentPod) -> Found:
    """Yield how the component does not answer its probes, as its flags are; each once for all probes."""
    told = {each.message: each for each in reversed(list(_check_all(pod)))}
    yield from told.values()


def _check_all(pod: ComponentPod) -> Found:
    main, line = pod.main, pod.line
    if main is None or line is None or any("$(" in (word.value or "") for word in line.flags):
        return
    for probe in (main[name] for name in PROBES):
        handler = next((probe[name] for name in ("httpGet", "tcpSocket") if probe[name].is_given), None)
        asked = _asked(handler, main) if handler is not None else None
        if asked is not None:
            yield from _check_answer(asked, line)
        elif handler is not None:
            message = "the container has no port of this name, so its probes are never answered"
            yield handler["port"].finding("probe-mismatch", message)


def _asked(handler: DocumentField, main: DocumentField) -> Asked | None:
    port = handler["port"]
    named = [each["containerPort"].number for each in main["ports"].elements() if each["name"].text == port.text]
    number = port.number if port.number is not None else next(iter(named), None)
    if number is None:
        return None
    scheme = (handler["scheme"].text or "HTTP") if handler.path[-1] == "httpGet" else ""
    headers = {each["name"].text.lower() for each in handler["httpHeaders"].elements()}
    return Asked(handler, scheme.lower(), handler["host"].text, number, not scheme or "authorization" in headers)


def _check_answer(asked: Asked, line: CommandLine) -> Found:
    elsewhere = "the component does not answer where its probes ask it"
    if line.program == "etcd":
        if not any(_is_answered(asked, *place) for place in _etcd_places(line)):
            yield _mismatch(line, "listen-metrics-urls", elsewhere, asked)
        return
    port = whole_number(line.value("secure-port")) if line.last("secure-port") else _DEFAULT_PORTS.get(line.program)
    if port is not None and asked.port != port:
        message = f"the component listens on {port}, and its probes ask {asked.port}"
        yield _mismatch(line, "secure-port", message, asked)
    elif port is not None and not _is_answered(asked, "https", line.value("bind-address"), str(port)):
        yield _mismatch(line, "bind-address", elsewhere, asked)
    is_anonymous = line.program != "kube-apiserver" or line.is_on("anonymous-auth", default=True)
    if not is_anonymous and not asked.has_credentials:
        message = "its probes have no credentials: the answer is 401, and the kubelet restarts the component"
        yield _mismatch(line, "anonymous-auth", message, asked)


def _etcd_places(line: CommandLine) -> Iterator[tuple[str, str, str]]:
    """Yield where etcd answers without a certificate: scheme, host and port."""
    for url in urls_of(line.values("listen-metrics-urls")):
        yield url.scheme, url.host, url.port
    for url in urls_of(line.values("listen-client-urls")):
        if url.scheme == "http" or not line.is_on("client-cert-auth"):
            yield url.scheme, url.host, url.port


def _is_answered(asked: Asked, scheme: str, host: str, port: str) -> bool:
    if str(asked.port) != port or asked.scheme not in ("", scheme):
        return False
    bound, wanted = parse_ip(host), parse_ip(asked.host)
    if bound is None or bound.is_unspecified or host == asked.host:  # a name only a resolver knows
        return True
    if asked.host == "localhost":
        return bound.is_loopback
    return wanted is None and not bound.is_loopback


def _mismatch(line: CommandLine, name: str, message: str, asked: Asked) -> ResultFinding:
    word, address = line.last(name), parse_ip(asked.host)
    if word is None:
        return asked.at.finding("probe-mismatch", message)
    # Of a node that is not there, only the loopback is known.
    bound = parse_ip(word.value or "") if name == "bind-address" else None
    is_of_node = not (address is None or address.is_loopback) and not (bound is None or bound.is_loopback)
    return ResultFinding("probe-mismatch", word.at, f"--{name}: {message}", None, is_of_node)


def weakened_probes(old: ComponentPod, new: ComponentPod) -> Found:
    """Yield the probes of `old` that are gone, ask elsewhere, or wait much shorter."""
    if old.main is None or new.main is None:
        return
    for name in PROBES:
        before, after = old.main[name], new.main[name]
        if not before.is_given:
            continue
        if not after.is_given or not any(after[handler].is_given for handler in HANDLERS):
            yield after.finding("probe-removed", f"kubeadm's {name} is gone")
        elif any(not equal(before[handler].value, after[handler].value) for handler in HANDLERS):
            yield after.finding("probe-changed", f"kubeadm's {name} asks elsewhere")
        elif name != "readinessProbe" and _seconds(after) * _PATIENCE < _seconds(before):
            message = f"it gives up after {_seconds(after)} s, kubeadm's after {_seconds(before)} s"
            yield after.finding("probe-impatient", message)


def _seconds(probe: DocumentField) -> int:
    """Return after how long a component that does not answer is restarted."""
    tries, period = probe["failureThreshold"].number or 3, probe["periodSeconds"].number or 10
    return (probe["initialDelaySeconds"].number or 0) + tries * period
