"""The pictures of CONTRIBUTING.md are those that the imports draw."""

from tests import pictures


def test_the_pictures_are_those_of_the_imports():
    page = pictures.PAGE.read_text()
    assert pictures.drawn(page) == page


def test_a_room_is_reached_through_others_and_rooms_that_import_each_other_share_a_box():
    below = pictures.reached({"plots": {"tables"}, "tables": {"kernels"}, "kernels": {"words"}, "words": {"kernels"}})
    assert below["plots"] == {"tables", "kernels", "words"}
    assert below["kernels"] == below["words"] == {"kernels", "words"}
    assert pictures.room("quorisk.analysis.results.frame") == "analysis/results"
    assert pictures.room("quorisk.kernels.rule") == pictures.CONTRACT
    assert pictures.room("quorisk.command.app") == "quorisk"
    assert pictures.room("quorisk") is None
