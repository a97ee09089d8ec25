"""A process that takes a turn, holds it for a while and ends it: `python -m tests.kube.one_turn PORT NAME SECONDS`.

It writes `took` and `ended` with the monotonic clock, which all processes of a machine share, and what it reports.
"""

import sys
import time

from garboard.engine import EndTurn, TakeTurn
from garboard.kube import Access, KubeClient, LeaseTurns
from tests.kube.real_server import TOKEN

PLACE = {"name": "garboard-etcd", "namespace": "kube-system"}


def main(port: int, holder: str, seconds: float, timeout_s: float) -> None:
    access = Access(server=f"https://127.0.0.1:{port}", host="127.0.0.1", port=port, token=TOKEN, is_unverified=True)
    turns = LeaseTurns(lambda: KubeClient(access), _write)
    turns.take(TakeTurn(**PLACE, holder=holder, timeout_s=timeout_s, peer_url=f"https://{holder}:2380"))
    _write(f"took {time.monotonic()} left={','.join(turns.left_behind())}")
    time.sleep(seconds)
    _write(f"ended {time.monotonic()}")
    turns.end(EndTurn(**PLACE, holder=holder))


def _write(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
