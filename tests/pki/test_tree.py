from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garboard.errors import NotReady
from garboard.pki import CERTIFICATES
from garboard.pki.chain import chain_problem
from garboard.pki.decide import Issue, Refuse, decide_for_init, decide_for_join
from garboard.pki.files import write_files
from garboard.pki.store import observe_pairs
from garboard.pki.tree import issue_decided
from tests.pki.fixtures import INPUTS, KEYS, NOW, MemoryFolder, full_folder

FULL = full_folder().files


def test_empty_folder_is_filled_and_every_chain_verifies() -> None:
    folder = MemoryFolder()
    observed = observe_pairs(folder)
    write_files(folder, issue_decided(decide_for_init(observed, INPUTS, NOW), observed, INPUTS, KEYS, NOW))
    pairs = observe_pairs(folder)
    for spec in CERTIFICATES:
        ca = next(each for each in CERTIFICATES if each.name == (spec.ca or spec.name))
        chain, root = pairs[spec.base_name].chain, pairs[ca.base_name].certificate
        assert isinstance(chain, tuple)
        assert root is not None
        assert chain_problem(chain, root, NOW) is None


@settings(max_examples=40)
@given(st.sets(st.sampled_from(sorted(FULL)), max_size=8), st.booleans(), st.booleans())
def test_what_is_decided_and_done_needs_nothing_more(removed: set[str], is_join: bool, has_external_etcd: bool) -> None:
    inputs = replace(INPUTS, has_external_etcd=has_external_etcd)
    decide = decide_for_join if is_join else decide_for_init
    folder = MemoryFolder({name: data for name, data in FULL.items() if name not in removed})
    observed = observe_pairs(folder)
    decisions = decide(observed, inputs, NOW)
    if any(isinstance(each, Refuse) for each in decisions):
        with pytest.raises(NotReady):
            issue_decided(decisions, observed, inputs, KEYS, NOW)
        return
    kept = dict(folder.files)
    write_files(folder, issue_decided(decisions, observed, inputs, KEYS, NOW))
    again = decide(observe_pairs(folder), inputs, NOW)
    assert not [each for each in again if isinstance(each, Issue | Refuse)]
    assert {name: folder.files[name] for name in kept} == kept


def test_all_refusals_are_told_together() -> None:
    folder = MemoryFolder({"ca.crt": b"?", "etcd/ca.crt": b"?"})
    observed = observe_pairs(folder)
    with pytest.raises(NotReady, match=r"pki/ca\.crt.*pki/etcd/ca\.crt"):
        issue_decided(decide_for_init(observed, INPUTS, NOW), observed, INPUTS, KEYS, NOW)
