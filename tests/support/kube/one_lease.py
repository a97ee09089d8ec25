"""A process that acquires a Lease, holds it for a while, or until its standard input ends, and releases it.

Run as `python -m tests.support.kube.one_lease PORT NAME SECONDS TIMEOUT`. It
writes `took` and `ended` with the monotonic clock, which all processes of a machine share, and what it
reports.
"""

import select
import sys
import time

from garboard.kube import Access, ClusterLeases, KubeClient, LeaseClaim, LeasePayload
from tests.support.kube.real_server import TOKEN

PLACE = {"name": "garboard-etcd", "namespace": "kube-system"}
# Shorter than in a cluster: nothing else depends on how long it is.
DURATION_S = 4.0


def claim_of(holder: str, *, peer_url: str = "", duration_s: float = DURATION_S) -> LeaseClaim:
    payload = LeasePayload("etcd-member", peer_url) if peer_url else None
    return LeaseClaim(
        name=PLACE["name"], namespace=PLACE["namespace"], holder=holder, payload=payload, duration_s=duration_s
    )


def main(port: int, holder: str, seconds: float, timeout_s: float) -> None:
    access = Access(server=f"https://127.0.0.1:{port}", host="127.0.0.1", port=port, token=TOKEN, is_unverified=True)
    leases = ClusterLeases(lambda: KubeClient(access), _write)
    claim = claim_of(holder, peer_url=f"https://{holder}:2380")
    leases.acquire(claim, timeout_s)
    _write(f"took {time.monotonic()} left={','.join(leases.left_behind('etcd-member'))}")
    leases.forget_left_behind("etcd-member")
    select.select([sys.stdin], [], [], seconds)
    _write(f"ended {time.monotonic()}")
    leases.release(claim)


def _write(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
