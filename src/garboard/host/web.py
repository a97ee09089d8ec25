"""Fetching a file over HTTP(S), with a bound on the wait for the server and on the size."""

from garboard.errors import GarboardError

MAX_BYTES = 512 * 1024 * 1024
CONNECT_TIMEOUT_S = 5.0


class Unreachable(GarboardError):
    """A server that does not answer, or answers with anything but the file."""

    default_class = "download"


def fetch(url: str, *, timeout_s: float = CONNECT_TIMEOUT_S, limit: int = MAX_BYTES) -> bytes:
    """Return the bytes behind `url`."""
    # Most runs fetch nothing, and these take longer to import than everything else together.
    import http.client
    import urllib.error
    import urllib.request

    if not url.startswith(("https://", "http://")):
        raise Unreachable(f"{url} is no web address")
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:
            data: bytes = answer.read(limit + 1)
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        raise Unreachable(f"{url}: {getattr(error, 'reason', None) or error}") from error
    if len(data) > limit:
        raise Unreachable(f"{url} is larger than {limit // 1024**2} MiB")
    return data
