"""Keys of radios that are the medium's own."""

from scenarios.scenario import Scenario


def test_a_key_of_the_medium_under_the_same_name_reaches_it_if_it_differs_from_the_default():
    assert Scenario(hops=1).of_medium() == {}
    assert Scenario(hops=1, fading_db=4.0, interference="sinr").of_medium() == {
        "interference": "sinr",
        "fading_db": 4.0,
    }
