"""The record of a cluster beside a snapshot of it: what is unfinished, and revisions as snapshots and as requests."""

from collections.abc import Mapping

import msgspec

from garboard.change.configuration import MAP_OF_KIND
from garboard.change.outcomes import ChangeInProgress
from garboard.change.request import RecordedState
from garboard.change.snapshot import ClusterSnapshot, StoredConfig
from garboard.manifests.uploaded import CONFIG_KEYS
from garboard.phases.change_record import ChangeRecord
from garboard.phases.revision import Revision


def refuse_unfinished(record: ChangeRecord) -> None:
    """Refuse to begin something that another change has not made room for yet."""
    target = record.target
    if target is None or record.is_finished:
        return
    if record.is_rolled_out:
        raise ChangeInProgress(
            f"revision {target.revision} by {target.author or 'somebody'}, of {target.changed_at}, "
            "waits to be confirmed",
            hint="garboard change confirm keeps it; garboard change status shows until when",
        )
    left = ", ".join(each.node for each in record.left) or "none but to say that it is done"
    who = target.author or "somebody"
    raise ChangeInProgress(
        f"revision {target.revision} by {who}, begun {target.started_at}, is {target.state}; left are {left}",
        hint="garboard change status has the commands; garboard change rollback REV takes it back",
    )


def documents_of(snapshot: ClusterSnapshot, changed: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the texts of the configuration by the names of their ConfigMaps, some of them as they are to be."""
    found = {name: snapshot.stored_text(name) for name in CONFIG_KEYS}
    return {**{name: text for name, text in found.items() if text is not None}, **(changed or {})}


def patch_sets_of(snapshot: ClusterSnapshot) -> dict[str, str]:
    """Return the digests of the patches of all nodes; empty for those that have none."""
    return {each.name: each.patch_set for each in snapshot.nodes}


def state_of(revision: Revision) -> RecordedState:
    """Return a revision as what is asked for."""
    kinds = {name: kind for kind, name in MAP_OF_KIND.items()}
    return RecordedState(
        texts={kinds[name]: text for name, text in revision.documents.items() if name in kinds},
        patch_sets=revision.patch_sets,
        source=f"revision {revision.number}",
    )


def as_recorded(snapshot: ClusterSnapshot, revision: Revision) -> ClusterSnapshot:
    """Return a snapshot with the configuration of a revision in place of the one that is there now."""
    maps = {
        name: StoredConfig(data={**_data(snapshot, name), CONFIG_KEYS[name]: text})
        for name, text in revision.documents.items()
        if name in CONFIG_KEYS
    }
    nodes = [msgspec.structs.replace(each, patch_set=revision.patch_sets.get(each.name, "")) for each in snapshot.nodes]
    return msgspec.structs.replace(snapshot, config_maps=maps, nodes=nodes)


def _data(snapshot: ClusterSnapshot, name: str) -> Mapping[str, str]:
    found = snapshot.config_maps.get(name)
    return found.data if found else {}
