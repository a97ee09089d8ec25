"""Asking the admin port of a server or an agent on this machine."""

import http.client
import json
from typing import Any, Final
from urllib.parse import urlencode

from garboard.errors import ClusterUnreachable, GarboardError

# Where `tunnel manifests` puts the server's, the stock default of a server, and that of an agent.
USUAL_PORTS: Final = (8133, 8095, 8094)
TIMEOUT_S: Final = 60.0


def ask_admin(address: str | None, path: str, **query: str) -> Any:
    """The JSON that the first admin port to answer gives for a path."""
    places = [address] if address else [f"127.0.0.1:{port}" for port in USUAL_PORTS]
    question = path + (f"?{urlencode(query)}" if query else "")
    for place in places:
        try:
            return _ask(place, question)
        except OSError:
            continue
    raise ClusterUnreachable(
        f"no tunnel server or agent answers at {', '.join(places)}",
        hint="name the admin port with --admin HOST:PORT (--admin-port of a server, --admin-server-port of an agent)",
    )


def _ask(place: str, question: str) -> Any:
    connection = http.client.HTTPConnection(place, timeout=TIMEOUT_S)
    try:
        connection.request("GET", question)
        answer = connection.getresponse()
        text = answer.read().decode()
        if answer.status == 200:
            return json.loads(text)
    except (http.client.HTTPException, ValueError) as error:
        raise GarboardError(f"{place} is no admin port of a tunnel: {error}", hint="check the port") from error
    finally:
        connection.close()
    why = text.strip() if answer.status == 400 else "it is no admin port of a garboard tunnel"
    raise GarboardError(f"{place}: {why}", hint="stock programs have no /status and no /trace")
