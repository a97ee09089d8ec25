"""The page of lint codes is that of the tables which the program uses."""

import re
from pathlib import Path

from garboard.patches.rules import RULES
from garboard.rules import RESULT_RULES, RuleKind
from tools.lint_codes import page

ROOT = Path(__file__).parents[2]


def test_page_is_what_the_tables_say() -> None:
    assert (ROOT / "docs/lint-codes.md").read_text() == page(), "run python -m tools.lint_codes"


def test_every_rule_tells_why_and_how_to_mend_it() -> None:
    for rule in RULES.values():
        assert re.fullmatch("[a-z]+(-[a-z]+)*", rule.id)
        assert rule.help.endswith(".")
        assert rule.mend.endswith("."), rule.id
        assert not rule.summary.endswith(".")


def test_only_dangers_can_be_accepted() -> None:
    assert {rule.id for rule in RULES.values() if rule.is_acceptable} == {
        rule.id for rule in RESULT_RULES.values() if rule.kind is RuleKind.DANGER
    }


def test_rules_use_no_code_that_the_tables_lack() -> None:
    pattern = re.compile(r'(?:\.finding|ResultFinding|FlagProblem|BadFieldValue)\(\s*"([a-z-]+)"')
    sources = (ROOT / "src/garboard/rules").glob("*.py")
    used = {code for source in sources for code in pattern.findall(source.read_text())}
    assert len(used) > 30
    assert used - RULES.keys() == set()


def test_every_code_of_a_result_is_used() -> None:
    sources = [path.read_text() for path in (ROOT / "src/garboard/rules").glob("*.py") if path.name != "codes.py"]
    assert {code for code in RESULT_RULES if not any(f'"{code}"' in source for source in sources)} == set()
