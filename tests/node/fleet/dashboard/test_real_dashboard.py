"""The dashboard as a command, on a real API server, in a real headless browser: light and dark, wide and narrow."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from garboard.fleet.controllers import Stored
from garboard.fleet.dashboard.rows import ClusterStage
from garboard.fleet.deploy import ControllerDeployment, controller_objects
from garboard.kube import Access, KubeClient, ObjectRef
from garboard.lab.binaries import Binaries
from garboard.manifests.objects import binding, group
from garboard.model import DEFAULT_VERSION
from tests.support.browser import Browser, browser
from tests.support.fleet.controller_process import GARBOARD, write_kubeconfig
from tests.support.fleet.dashboard_fleet import LOG, claim, pool, provision, says
from tests.support.fleet.dashboard_server import RealFleet, dashboard, quoted, token_of
from tests.support.fleet.real_fleet import install_kinds
from tests.support.kube.real_server import TOKEN, real_api_server

pytestmark = pytest.mark.real
_HOSTILE = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>\u202e"
_LIVE = "document.getElementById('state').dataset.state === 'live'"
_OUTSIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def access(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    users = {"viewer-token": "viewers", "nobody-token": "nobodies"}
    folder = tmp_path_factory.mktemp("server")
    with real_api_server(binaries, str(DEFAULT_VERSION), folder, users=users) as running:
        install_kinds(running)
        with KubeClient(running) as client:
            RealFleet(client).put_everything()
        yield running


@pytest.fixture
def fleet(access: Access) -> Iterator[RealFleet]:
    with KubeClient(access) as client:
        yield RealFleet(client)


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Browser]:
    with browser(tmp_path) as opened:
        yield opened


def test_fleet_is_seen_and_followed(access: Access, fleet: RealFleet, page: Browser, tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(access, tmp_path / "admin.conf")
    with dashboard(tmp_path, "--kubeconfig", str(kubeconfig)) as url:
        page.look(1300, 900)
        page.open(url)
        page.until(_LIVE)
        page.until_text("fleet/edge")
        text = page.text()
        for each in (*ClusterStage, "fleet/edge", "fleet/idle", "theirs", "position 1 of 1", "ManifestPatchNoMatch"):
            assert each in text, each
        _changes_are_seen(fleet, page)
        _logs_are_shown(fleet, page)
        _page_is_narrowed(page)
        assert page.complaints() == []
        assert {urlsplit(each).netloc for each in page.asked_for()} - {""} == {urlsplit(url).netloc}
    page.until("document.getElementById('state').dataset.state === 'lost'")


def _changes_are_seen(fleet: RealFleet, page: Browser) -> None:
    new, waiting = pool("brand-new", 7), claim("late", says("Pending", "True", "NoClusters", "position 2 of 2"))
    fleet.put(new)
    page.until_text("fleet/brand-new")
    fleet.put(waiting)
    page.until_text("position 2 of 2")
    fleet.say(claim("late", says("Pending", "True", "NoClusters", _HOSTILE)))
    page.until_text("⟨U+202E⟩")
    assert page.run("document.title") == "Fleet"
    assert page.run("document.querySelectorAll('main img, main script').length") == 0
    fleet.delete(new)
    fleet.delete(waiting)
    page.until("!document.body.innerText.includes('brand-new') && !document.body.innerText.includes('late')")


def _logs_are_shown(fleet: RealFleet, page: Browser) -> None:
    """A log that was opened stays open, and whole, while the page changes."""
    of_failed = "document.querySelector('details[data-key=\"ClusterProvision/failed/failed-0\"]')"
    assert page.run(f"{of_failed}.open") is False
    page.run(f"{of_failed}.querySelector('summary').click()")
    assert "line 79 of the log" in page.run(f"{of_failed}.querySelector('pre').innerText")
    assert "line 3 of the log" not in page.run(f"{of_failed}.querySelector('pre').innerText")
    page.run(f"{of_failed}.querySelector('a.whole').click()")
    page.until(f"{of_failed}.querySelector('pre').innerText.includes('line 3 of the log')")
    again = provision("failed", "failed-1", "failed", says("ClusterProvisionFailed", "True", "Again"), log="x\n")
    fleet.put(again)
    page.until_text("Again")
    assert page.run(f"{of_failed}.open") is True
    assert page.run(f"{of_failed}.querySelector('pre').textContent.trim()") == LOG
    fleet.delete(again)


def _page_is_narrowed(page: Browser) -> None:
    rows = "document.querySelectorAll('#clusters tbody tr').length"
    page.run("document.querySelector('a.chip.ready').click()")
    page.until(f"{rows} === 1 && location.search === '?stage=ready'")
    page.run("history.back()")
    page.until(f"{rows} === 10 && location.search === ''")
    page.run("const t = document.getElementById('text'); t.value = 'x7k2p'; t.dispatchEvent(new Event('input'))")
    page.until("document.body.innerText.includes('with “x7k2p” in a name')")
    page.run("document.querySelector('.narrowed a').click()")
    page.until(f"{rows} === 10 && document.getElementById('text').value === ''")


def test_page_fits_and_has_its_colours(access: Access, page: Browser, tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(access, tmp_path / "admin.conf")
    with dashboard(tmp_path, "--kubeconfig", str(kubeconfig)) as url:
        page.look(1300, 900)
        page.open(url)
        page.until(_LIVE)
        page.until_text("fleet/edge")
        page.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        for width in (1300, 400):
            for is_dark in (False, True):
                page.look(width, 900, is_dark=is_dark)
                page.picture(tmp_path / f"page-{width}-{'dark' if is_dark else 'light'}.png")
                assert page.run(_OUTSIDE) is False, f"something is wider than the window of {width}"
                back = page.run("getComputedStyle(document.body).backgroundColor")
                assert back == ("rgb(18, 22, 28)" if is_dark else "rgb(246, 247, 249)")
                filled = page.run("getComputedStyle(document.querySelector('rect.ready')).fill")
                assert filled == ("rgb(98, 207, 143)" if is_dark else "rgb(31, 122, 69)")
        assert page.complaints() == []


@pytest.fixture(scope="module")
def installed(access: Access) -> str:
    """Apply the dashboard's objects, and let a group of viewers see it; return the token of its account."""
    wanted = ControllerDeployment(has_dashboard=True)
    with KubeClient(access) as client:
        viewers = binding("viewers", "garboard-fleet-viewer", [group("viewers")]).content
        for content in (*controller_objects(wanted), viewers):
            each = Stored(content)
            client.create(ObjectRef(each.kind, each.namespace, each.name, each.text("apiVersion")), content)
    return token_of(access, wanted.namespace, "garboard-fleet-dashboard")


def test_viewers_are_those_whom_the_api_server_lets_see_the_fleet(
    access: Access, installed: str, fleet: RealFleet, page: Browser, tmp_path: Path
) -> None:
    """Served with the rights of its own account, as in the cluster."""
    own = Access(server=access.server, host=access.host, port=access.port, token=installed, is_unverified=True)
    kubeconfig = write_kubeconfig(own, tmp_path / "own.conf")
    with dashboard(tmp_path, "--kubeconfig", str(kubeconfig), "--address", "127.0.0.1:0") as url:
        page.look(1300, 900)
        page.open(url, is_untrusted=True)
        page.until_text("Sign in")
        page.picture(tmp_path / "sign-in.png")
        assert "edge" not in page.text()
        _sign_in(page, "wrong-token")
        page.until_text("the API server does not accept the token")
        _sign_in(page, "nobody-token")
        page.until_text("nobody-token may not list clusterpools.hive.openshift.io in all namespaces")
        assert "edge" not in page.text()
        _sign_in(page, "viewer-token")
        page.until(_LIVE)
        page.until_text("fleet/edge")
        fleet.put(pool("for-viewers", 1))
        page.until_text("fleet/for-viewers")
        page.run("document.getElementById('sign-out').click()")
        page.until("!document.body.innerText.includes('edge') && document.body.innerText.includes('Sign in')")
        assert page.run("sessionStorage.length") == 0
        fleet.delete(pool("for-viewers"))


def _sign_in(page: Browser, token: str) -> None:
    page.run(f"document.getElementById('token').value = {quoted(token)}")
    page.run("document.querySelector('#sign-in button').click()")


def test_token_is_enough_for_programs(access: Access, installed: str, tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(access, tmp_path / "admin.conf")
    with dashboard(tmp_path, "--kubeconfig", str(kubeconfig), "--address", "127.0.0.1:0") as url:
        for token, code in (("viewer-token", "200"), ("nobody-token", "403"), ("x", "401"), (TOKEN, "200")):
            curl = [
                "curl",
                "-sk",
                "-o",
                str(tmp_path / "page"),
                "-w",
                "%{http_code}",
                "-H",
                f"Authorization: Bearer {token}",
                url,
            ]
            assert subprocess.run(curl, capture_output=True, text=True, check=True, timeout=60).stdout == code
            assert ("fleet/edge" in (tmp_path / "page").read_text()) == (code == "200")


def test_user_who_may_not_list_the_fleet_is_told_at_once(access: Access, tmp_path: Path) -> None:
    poor = Access(server=access.server, host=access.host, port=access.port, token="nobody-token", is_unverified=True)
    kubeconfig = write_kubeconfig(poor, tmp_path / "poor.conf")
    ended = subprocess.run(
        [GARBOARD, "fleet", "dashboard", "--kubeconfig", str(kubeconfig)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert ended.returncode == 1
    assert "error[forbidden]" in ended.stderr
    assert "clusterpools" in ended.stderr
    assert "Traceback" not in ended.stderr
