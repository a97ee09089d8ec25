"""The page of a dashboard: whole, safe whatever the texts of objects are, and nothing in it from elsewhere."""

import re
from typing import Any

import pytest

from garboard.fleet.dashboard import (
    DASHBOARD_STYLE,
    SCRIPT,
    DashboardObjects,
    DashboardQuery,
    Overview,
    dashboard_page,
    fragment,
    overview_of,
)
from garboard.fleet.dashboard.rows import ClusterStage
from tests.support.fleet.dashboard_fleet import EVERYTHING, as_objects, deprovision, says
from tests.support.html_pages import HOSTILE, outline, shown

STUCK = deprovision("deleting", says("DeprovisionFailed", "True", "HostsLeft", "host a does not answer"))


def overview(*contents: dict[str, Any], troubles: tuple[str, ...] = ("it is out of date",), **shown: str) -> Overview:
    return overview_of(as_objects(*(contents or (*EVERYTHING, STUCK))), DashboardQuery.of(shown), troubles)


PAGE = dashboard_page(overview(pool="fleet/edge"), "tag", server="https://server:6443")
PLAIN = outline(PAGE)
# What chooses stages, kinds and moments; everything else may say anything.
_CHOOSING = {
    "kind",
    "stage",
    "type",
    "status",
    "lastTransitionTime",
    "creationTimestamp",
    "deletionTimestamp",
    "lifetime",
}


def hostile(value: Any, text: str) -> Any:
    """Return objects with a text in place of every text of theirs, but for what the page goes by; names stay apart."""
    if isinstance(value, dict):
        return {key: each if key in _CHOOSING else hostile(each, text) for key, each in value.items()}
    if isinstance(value, list):
        return [hostile(each, text) for each in value]
    return f"{value[:1]}{text}{value[1:]}" if isinstance(value, str) else value


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_of_objects_are_shown_and_do_nothing(text: str) -> None:
    spoilt = [hostile(each, text) for each in (*EVERYTHING, STUCK)]
    found = outline(dashboard_page(overview(*spoilt, troubles=(text,), pool=f"f{text}leet/e{text}dge"), server=text))
    assert found.tags == PLAIN.tags
    assert found.attributes == PLAIN.attributes
    assert found.text.count(shown(text)) > 40
    assert not re.search("[\u202e\u2066\x00\x1b\u2028]", found.text)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("name", ["pool", "stage", "text"])
def test_texts_of_a_query_are_shown_and_do_nothing(name: str, text: str) -> None:
    found = outline(
        dashboard_page(overview_of(as_objects(*EVERYTHING), DashboardQuery.of({name: text}), ("it is out of date",)))
    )
    assert found.tags <= PLAIN.tags
    assert found.attributes <= PLAIN.attributes


def test_page_has_everything_of_the_fleet() -> None:
    for each in (
        "fleet/edge", "fleet/idle", "InventoryValid", "theirs", "position 1 of 1", "ready-a8b9c", "of at most 12",
        "ClusterImageSet img does not exist", "ManifestPatchNoMatch", "line 79 of the log", "The whole log",
        "2026-01-02 03:04:05 UTC", "it is out of date", "https://server:6443", "host a does not answer",
        *ClusterStage,
    ):  # fmt: skip
        assert each in outline(dashboard_page(overview(), server="https://server:6443")).text.replace("\n", ""), each


def test_page_loads_its_style_and_its_script_from_beside_it_and_nothing_else() -> None:
    assert sorted(re.findall(r'(?:src|href)="([^"?]+)', PAGE)) == [
        "dashboard.css", "dashboard.js", "data:,", *["log"] * PAGE.count('class="whole"'),
    ]  # fmt: skip
    assert PLAIN.tags.isdisjoint({"style", "img", "iframe", "object", "base"})
    assert PLAIN.attributes.isdisjoint({"style", "onclick", "onload", "onerror", "srcset", "ping"})
    assert not re.search(r"url\(|@import|https?:", DASHBOARD_STYLE)
    assert not re.search(r"innerHTML|outerHTML|document\.write|eval\(|https?:|insertAdjacentHTML", SCRIPT)


def test_fragment_is_a_part_of_the_page() -> None:
    found = overview(pool="fleet/edge")
    assert fragment(found) in dashboard_page(found)
    outline(fragment(found))


def test_page_without_a_viewer_has_nothing_of_the_fleet() -> None:
    page = dashboard_page(None)
    assert outline(page).text.count("Sign in") == 2
    assert '<main id="live" data-tag="">\n</main>' in page
    assert '<form id="sign-in" method="get">' in page
    assert '<form id="sign-in" method="get" hidden>' in PAGE
    for each in EVERYTHING:
        assert f"{each['metadata']['namespace']}/" not in page


def test_page_of_an_empty_fleet_is_whole() -> None:
    found = outline(dashboard_page(overview_of(DashboardObjects(), DashboardQuery())))
    assert found.text.count("none\n") == 3
    assert "Failures" not in found.text


def test_narrowed_page_says_so_and_leads_back() -> None:
    page = dashboard_page(overview(pool="fleet/edge", stage="ready", text="a"))
    assert "Only pool fleet/edge, stage ready, with “a” in a name." in outline(page).text
    assert '<input type="hidden" name="stage" value="ready">' in page
    assert '<a href="?">Show all</a>' in page


def test_equal_fleets_give_equal_pages() -> None:
    assert dashboard_page(overview()) == dashboard_page(
        overview_of(as_objects(*reversed((*EVERYTHING, STUCK))), DashboardQuery(), ("it is out of date",))
    )
