"""Which proxy a connection takes, beside Go's own httpproxy over generated cases."""

import json
import random
import subprocess

import pytest

from garboard.errors import InvalidValue
from garboard.net.proxies import DEFAULT_PORTS, ProxyAddress, parse_proxy_url, proxy_for
from tools.harness.oracles import proxies_oracle

HOSTS = (
    "api.example.com", "example.com", "EXAMPLE.com", "notexample.com", "deep.api.example.com", "localhost", "Localhost",
    "a.localhost", "10.1.2.3", "10.200.0.1", "192.0.2.7", "127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "fd00::1",
    "2001:db8::7", "fe80::1%eth0", "::ffff:10.1.2.3", "::ffff:127.0.0.1", "cp1", "bücher.example", "example.com.",
)  # fmt: skip
EXCEPTIONS = (
    "*", "", " ", "example.com", ".example.com", "*.example.com", "EXAMPLE.COM", "example.com:443", ".example.com:6443",
    "example.com:", ":443", "api.example.com", "com", "10.0.0.0/8", "10.1.2.3/8", "10.1.0.0/255.255.0.0", "10.1.2.3",
    "10.1.2.3:443", "10.1.2.3:6443", "10.1.2", "10.", "0.0.0.0/0", "::/0", "fd00::/8", "fd00::1", "[fd00::1]",
    "[fd00::1]:443", "[fd00::1]:6443", "::ffff:10.1.2.3", "::ffff:10.0.0.0/104", "::ffff:0:0/96", "::fffe:0:0/95",
    "10.0.0.0/08", "10.0.0.0/33", "010.1.2.3", "fe80::1%eth0", "fe80::1", "fe80::/10", "cp1", "*cp1", "**", "a:b:c",
    "[x", "bücher.example", "xn--bcher-kva.example", "192.0.2.7:x", "*.com:443", "..example.com", "*.", "example.com.",
)  # fmt: skip
PROXIES = (
    "", "http://proxy:3128", "https://proxy", "proxy:3128", "proxy", "10.0.0.9:8080", "10.0.0.9", ":3128", "socks5://p",
    "socks5h://p:9", "HTTP://Proxy:1", "http://u:p@proxy:1", "http://u@proxy", "http://u:@proxy", "http://:p@proxy",
    "u:p@proxy:1", "http://a%40b:c%3Ad@proxy:1", "http://u:p@ss@proxy", "http://u:p w@proxy", "http://%zz@proxy",
    "http://[fd00::9]:3128", "http://[fd00::9]", "http://[::1%25lo]:1", "http://[10.0.0.9]:1", "http://fd00::9",
    "http://proxy:port", "http://proxy:99999999", "http://proxy:", "http://pro xy", "http://proxy/%zz", "http://",
    "//proxy:1", "///proxy", "ftp:proxy", "ftp://proxy", "http:proxy", "http:/proxy", "http://proxy?x#y", "p#%zz",
    "\x7f", "http://pro%78y", "http://pro%ffy", "http://a,b:1", "http://p\u00fc", "http://b\u00fccher:1", "1proxy:1",
    "/proxy", "http://proxy:1/path", "http://user:pä@proxy", "*", "?", "a/b:c", "http://[fd00::9", "http://x[fd00::9]",
    "http://|",
)  # fmt: skip


NOISE = "ab.*:/[]%01 -@#?"


def generated(count: int, seed: int) -> list[dict[str, object]]:
    """Cases out of the lists above, now and then with noise instead."""
    chance = random.Random(seed)

    def pick(known: tuple[str, ...]) -> str:
        noise = "".join(chance.choices(NOISE, k=chance.randrange(1, 9)))
        return noise if chance.random() < 0.2 else chance.choice(known)

    return [
        {
            "HTTPProxy": pick(PROXIES),
            "HTTPSProxy": pick(PROXIES),
            "NoProxy": ",".join(pick(EXCEPTIONS) for _ in range(chance.randrange(5))),
            "CGI": chance.random() < 0.1,
            "Scheme": chance.choice(("http", "https", "https")),
            "Host": chance.choice(HOSTS),
            "Port": chance.choice(("443", "6443", "80")),
        }
        for _ in range(count)
    ]


def chosen(case: dict[str, object]) -> dict[str, object]:
    """What we choose, in the words of the Go program."""
    environment = {
        "HTTP_PROXY": str(case["HTTPProxy"]),
        "HTTPS_PROXY": str(case["HTTPSProxy"]),
        "NO_PROXY": str(case["NoProxy"]),
        "REQUEST_METHOD": "GET" if case["CGI"] else "",
    }
    nothing: dict[str, object] = dict.fromkeys(("Scheme", "Host", "Port", "User", "Password"), "")
    nothing |= dict.fromkeys(("HasProxy", "HasUser", "Failed"), False)
    try:
        found = proxy_for(str(case["Scheme"]), str(case["Host"]), int(str(case["Port"])), environment)
    except InvalidValue:
        return {**nothing, "Failed": True}
    if found is None:
        return nothing
    return {
        "HasProxy": True, "Scheme": found.scheme, "Host": found.host, "Port": found.port, "Failed": False,
        "HasUser": found.user is not None, "User": found.user or "", "Password": found.password,
    }  # fmt: skip


def with_default_port(answer: dict[str, object]) -> dict[str, object]:
    default = DEFAULT_PORTS.get(str(answer["Scheme"]), 0) if answer["HasProxy"] else ""
    return {**answer, "Port": int(str(answer["Port"])) if answer["Port"] else default}


@pytest.mark.real
def test_go_chooses_the_same_proxy() -> None:
    program = proxies_oracle().built()
    cases = generated(20_000, seed=7)
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    answers = [with_default_port(json.loads(line)) for line in done.stdout.splitlines()]
    assert len(answers) == len(cases)
    ours = [chosen(case) for case in cases]
    different = [each for each in zip(cases, answers, ours, strict=True) if each[1] != each[2]]
    assert different == []


@pytest.mark.parametrize(
    ("environment", "host", "proxy"),
    [
        pytest.param({}, "10.0.0.1", None, id="nothing is set"),
        pytest.param({"HTTPS_PROXY": "p:1"}, "10.0.0.1", "http://p:1", id="no scheme is http"),
        pytest.param({"https_proxy": "p:1"}, "10.0.0.1", "http://p:1", id="small letters"),
        pytest.param({"HTTPS_PROXY": "p:1", "https_proxy": "q:1"}, "10.0.0.1", "http://p:1", id="capitals come first"),
        pytest.param({"HTTP_PROXY": "p:1"}, "10.0.0.1", None, id="that is for http"),
        pytest.param({"HTTPS_PROXY": "p:1"}, "127.0.0.1", None, id="loopback never"),
        pytest.param({"HTTPS_PROXY": "p:1"}, "localhost", None, id="localhost never"),
        pytest.param({"HTTPS_PROXY": "p:1", "NO_PROXY": "10.0.0.0/8"}, "10.0.0.1", None, id="network"),
        pytest.param({"HTTPS_PROXY": "p:1", "NO_PROXY": "10.0.0.0/8"}, "11.0.0.1", "http://p:1", id="other network"),
        pytest.param({"HTTPS_PROXY": "p:1", "NO_PROXY": ".example"}, "a.example", None, id="below a domain"),
        pytest.param({"HTTPS_PROXY": "p:1", "NO_PROXY": ".example"}, "example", "http://p:1", id="not the domain"),
        pytest.param({"HTTPS_PROXY": "p:1", "NO_PROXY": "a.example:6443"}, "a.example", None, id="that port"),
        pytest.param({"HTTPS_PROXY": "p:1", "NO_PROXY": "a.example:1"}, "a.example", "http://p:1", id="other port"),
        pytest.param({"HTTPS_PROXY": "p:1", "NO_PROXY": "x,*"}, "a.example", None, id="all"),
        pytest.param({"HTTPS_PROXY": "https://u:p@p"}, "a.example", "https://p:443", id="without its user"),
    ],
)
def test_environment_decides(environment: dict[str, str], host: str, proxy: str | None) -> None:
    found = proxy_for("https", host, 6443, environment)
    assert (str(found) if found else None) == proxy


def test_password_of_a_proxy_is_not_shown() -> None:
    proxy = ProxyAddress.parse("http://someone:hush%21@proxy:1")
    assert proxy is not None
    assert (proxy.user, proxy.password) == ("someone", "hush!")
    assert "hush" not in f"{proxy} {proxy!r}"


@pytest.mark.parametrize("text", ["proxy:1", "ftp://proxy", "http://", "http://u:hush@pro xy"])
def test_proxy_url_of_a_kubeconfig_is_refused_as_client_go_does(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        parse_proxy_url(text)
    assert "hush" not in caught.value.message
    assert str(parse_proxy_url("socks5://proxy")) == "socks5://proxy:1080"
