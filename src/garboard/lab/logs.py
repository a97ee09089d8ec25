"""Where the logs of a node are: its services write to /var/log, its pods below /var/log/pods."""

from pathlib import Path


def find_logs(var: Path, of: str) -> list[Path]:
    """Return the log of a service, or the newest log of each container of the pods whose name begins with `of`."""
    service = var / "log" / f"{of}.log"
    if service.exists() and "/" not in of:
        return [service]
    found = []
    for pod in sorted((var / "log/pods").glob("*")):
        if pod.name.split("_")[1:2] and pod.name.split("_")[1].startswith(of):
            for container in sorted(pod.iterdir()):
                found += sorted(container.glob("*.log"), key=lambda path: path.stat().st_mtime)[-1:]
    return found


def list_logs(var: Path) -> list[str]:
    """Name every log of a node."""
    services = sorted(path.stem for path in (var / "log").glob("*.log"))
    pods = sorted(path.name.split("_")[1] for path in (var / "log/pods").glob("*_*_*"))
    return services + pods
