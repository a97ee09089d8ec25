"""Which API servers a kubelet talks to: its connections to port 6443, sampled from its start on."""

from tools.harness.lab import LabUnderTest

FOUND = "/var/lib/kubelet-peers"
# Runs in the node with nothing but the standard library; looks until it is killed or ten minutes are over.
_SAMPLER = f"""
import os, time
def pids():
    for each in os.listdir("/proc"):
        if each.isdigit():
            try:
                if open(f"/proc/{{each}}/comm").read().strip() == "kubelet":
                    yield each
            except OSError:
                pass
def sockets(pid):
    for each in os.listdir(f"/proc/{{pid}}/fd"):
        try:
            yield os.readlink(f"/proc/{{pid}}/fd/{{each}}")
        except OSError:
            pass
def peers(pid):
    held = set(sockets(pid))
    for line in open(f"/proc/{{pid}}/net/tcp").read().splitlines()[1:]:
        fields = line.split()
        host, port = fields[2].split(":")
        if int(port, 16) == 6443 and f"socket:[{{fields[9]}}]" in held:
            yield ".".join(str(each) for each in reversed(bytes.fromhex(host)))
seen, until = dict(), time.time() + 600
while time.time() < until:
    for pid in pids():
        try:
            for peer in peers(pid):
                seen[peer] = seen.get(peer, 0) + 1
        except OSError:
            pass
    with open("{FOUND}.new", "w") as file:
        file.write("".join(f"{{peer}} {{count}}\\n" for peer, count in seen.items()))
    os.replace("{FOUND}.new", "{FOUND}")
    time.sleep(0.03)
"""


def start_sampling(lab: LabUnderTest, node: str) -> None:
    """Begin to look at the kubelet of a node, which may not run yet."""
    lab.exec(node, "sh", "-c", f"cat >/tmp/sampler.py <<'EOF'\n{_SAMPLER}\nEOF\n")
    lab.exec(node, "sh", "-c", "nohup python3 /tmp/sampler.py >/tmp/sampler.log 2>&1 & echo $! >/tmp/sampler.pid")


def peers_seen(lab: LabUnderTest, node: str) -> dict[str, int]:
    """Stop looking; return how often the kubelet was seen connected to which API server."""
    lab.exec(node, "sh", "-c", "kill $(cat /tmp/sampler.pid)")
    rows = (line.split() for line in lab.exec(node, "cat", FOUND).stdout.splitlines())
    return {peer: int(count) for peer, count in rows}
