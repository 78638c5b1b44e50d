"""The ledger counts lost, doubled and dark effects, whoever the engine is."""

from everstep.torture.ledger import Counts, Expected, settle

MAIL, READ = Expected("mail"), Expected("read", repeatable=True)


def test_a_clean_ledger() -> None:
    ledger = settle([MAIL, READ], Counts(made={"mail": 1, "read": 3}, recorded={"mail": 1, "read": 1}))
    assert ledger.as_json() == {"lost": (), "doubled": (), "dark": (), "asked": 0}


def test_lost_doubled_and_dark() -> None:
    other = Expected("other")
    ledger = settle([MAIL, READ, other], Counts(made={"mail": 2, "other": 1}, recorded={"mail": 1}))
    assert ledger.lost == ("read",)
    assert ledger.doubled == ("mail",)
    assert ledger.dark == ("other",)


def test_a_decision_allows_one_more() -> None:
    counts = Counts(made={"mail": 2}, recorded={"mail": 1}, asked={"mail": 1}, decisions={"mail": 1})
    assert settle([MAIL], counts).as_json() == {"lost": (), "doubled": (), "dark": (), "asked": 1}


def test_what_no_plan_asked_for_is_dark() -> None:
    assert settle([MAIL], Counts(made={"mail": 1, "rm": 1}, recorded={"mail": 1})).dark == ("rm",)
