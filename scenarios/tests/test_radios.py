"""Keys of radios that are the medium's own."""

from scenarios.scenario import Scenario


def test_a_key_of_the_medium_under_the_same_name_reaches_it_if_it_differs_from_the_default():
    assert Scenario(hops=1).of_medium() == {}
    assert Scenario(hops=1, fading_db=4.0, interference="sinr").of_medium() == {
        "interference": "sinr",
        "fading_db": 4.0,
    }


def test_the_discipline_of_the_queue_reaches_the_medium_if_it_is_not_the_default():
    assert Scenario(hops=1, queue=20).queue_keys() == {"packets": 20, "control_first": True}
    queue = Scenario(hops=1, queue_discipline="fq-codel", control_first=False).queue_keys()
    assert queue == {"discipline": "fq-codel", "packets": 50, "control_first": False}


def test_a_queue_may_have_the_name_of_its_discipline():
    named = Scenario.model_validate({"hops": 1, "queue": "fq-codel"})
    assert (named.queue_discipline, named.queue) == ("fq-codel", 50)
    assert Scenario.from_json(named.to_json()) == named
