"""The dashboard of a fleet: what is seen of its objects, as values, and these as one HTML page.

Everything here is pure. `garboard.node.fleet.dashboard` watches the objects, and serves the page.
"""

from garboard.fleet.dashboard.objects import SHOWN_KINDS, DashboardObjects, shown_of
from garboard.fleet.dashboard.overview import DashboardQuery, Overview, overview_of
from garboard.fleet.dashboard.page import dashboard_page, fragment
from garboard.fleet.dashboard.script import SCRIPT
from garboard.fleet.dashboard.style import DASHBOARD_STYLE

__all__ = [
    "DASHBOARD_STYLE",
    "SCRIPT",
    "SHOWN_KINDS",
    "DashboardObjects",
    "DashboardQuery",
    "Overview",
    "dashboard_page",
    "fragment",
    "overview_of",
    "shown_of",
]
