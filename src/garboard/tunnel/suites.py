"""Cipher suites and TLS versions as the stock programs name them, which is how Go does."""

import ssl
from collections.abc import Iterable
from typing import Final

from garboard.errors import InvalidValue

# What Go counts as secure. Those of TLS 1.3 cannot be chosen there either, and change nothing.
SUITES: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
}
NEWER: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
# Older versions are taken, as in the stock server, and mean 1.2: nothing below it is safe, nor in our OpenSSL.
_VERSIONS: Final = {
    **dict.fromkeys(("", "VersionTLS10", "VersionTLS11", "VersionTLS12"), ssl.TLSVersion.TLSv1_2),
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}


def parse_suites(names: Iterable[str]) -> tuple[str, ...]:
    """OpenSSL's names for suites of TLS 1.2; none for none given."""
    wanted = tuple(names)
    unknown = sorted(set(wanted) - SUITES.keys() - NEWER)
    if unknown:
        raise InvalidValue(f"{unknown[0]} is not a secure cipher suite", hint=f"known are {', '.join(sorted(SUITES))}")
    return tuple(SUITES[name] for name in wanted if name in SUITES)


def parse_minimum(text: str) -> ssl.TLSVersion:
    try:
        return _VERSIONS[text]
    except KeyError:
        raise InvalidValue(f"{text!r} is not a TLS version", hint="write VersionTLS12 or VersionTLS13") from None
