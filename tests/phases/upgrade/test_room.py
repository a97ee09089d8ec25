"""The room that a snapshot of etcd needs: twice the database."""

import pytest

from garboard.phases.upgrade.context import SnapshotRoom


@pytest.mark.parametrize(
    ("database", "free", "is_enough"),
    [(100, 200, True), (100, 199, False), (0, 0, True), (1, 1 << 40, True)],
)
def test_twice_the_database_has_to_be_free(database: int, free: int, is_enough: bool) -> None:
    assert SnapshotRoom(database, free).is_enough is is_enough
