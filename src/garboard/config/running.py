"""What kubeadm checks of a configuration only when init or join is about to use it, in each of their phases."""

from collections.abc import Iterable

from garboard.errors import BadUsage, InvalidValue
from garboard.model.addresses import is_global_unicast, parse_ip


def ignored_checks(given: Iterable[str], configured: Iterable[str]) -> frozenset[str]:
    """Unite the checks whose errors are only warnings, in lower case; `all` stands alone."""
    names = frozenset(name.strip().lower() for name in (*given, *configured))
    if "all" in names and len(names) > 1:
        raise BadUsage(
            f'ignore-preflight-errors: Invalid value: "{",".join(sorted(names))}": '
            "don't specify individual checks if 'all' is used",
            hint="keep all, or the single checks",
        )
    return names


def check_bind_address(advertise_address: str) -> None:
    """Refuse an address that no other node could reach the API server at."""
    address = parse_ip(advertise_address)
    if address is None or not is_global_unicast(address):
        raise InvalidValue(
            f'cannot use "{advertise_address}" as the bind address for the API Server',
            hint="set localAPIEndpoint.advertiseAddress to a global address of this machine",
        )
