"""`--rootfs` holds: whatever paths say, and whatever is swapped meanwhile, nothing outside is read or touched.

Each test runs where the machine is read-only but for its scratch folder.
"""

import os
from pathlib import Path

import pytest

from tests.support.host.mounting import in_read_only_machine

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting is for root")

_FUZZ = "from tests.support.cli.rootfs_fuzz import main; main(scratch, int(sys.argv[1]), int(sys.argv[2]))"


def fuzz(scratch: Path, seed: int, tries: int, timeout_s: float) -> None:
    told = in_read_only_machine(_FUZZ, scratch, str(seed), str(tries), timeout_s=timeout_s)
    assert told == f"{tries} tries\n"


def test_no_path_leads_out_of_the_root(tmp_path: Path) -> None:
    fuzz(tmp_path, seed=0, tries=40, timeout_s=280)


@pytest.mark.verify
@pytest.mark.timeout(1800)
def test_no_path_leads_out_of_the_root_in_many_more_tries(tmp_path: Path, seed: int) -> None:
    fuzz(tmp_path, seed=seed, tries=5000, timeout_s=1700)
