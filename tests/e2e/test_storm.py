"""A short storm, and that a storm sees what it is to see."""

import unittest

import shared_storm
from storm import storm


class Storm(unittest.TestCase):
    def test_nothing_is_lost_mixed_up_or_left(self):
        told = storm(3, seed=1, seconds=2.0)
        self.assertEqual(told.faults(), [], told)
        self.assertEqual((told.ends, told.rounds), (2, 3), told)

    def test_every_sabotage_is_seen(self):
        seen = {
            "wrong": "wrong answers", "twice": "wrong answers", "no-kill": "no kill landed", "no-child": "no worker ever lived",
            "lose": "calls lost",
        }
        for sabotage, words in seen.items():
            with self.subTest(sabotage):
                told = storm(1, seed=2, sabotage=sabotage, seconds=1.5, patience=2)
                self.assertIn(words, " ".join(told.faults()), told)

    def test_four_clients_of_one_that_is_killed(self):
        told = shared_storm.storm(3, seed=1)
        self.assertEqual(told.faults(), [], told)

    def test_every_sabotage_of_the_shared_one_is_seen(self):
        seen = {"no-end": "was never killed", "lose": "calls lost"}
        for sabotage, words in seen.items():
            with self.subTest(sabotage):
                told = shared_storm.storm(1, seed=2, sabotage=sabotage, seconds=3, patience=2)
                self.assertIn(words, " ".join(told.faults()), told)

    def test_twelve_clients_race_while_it_is_killed(self):
        faults, kills = shared_storm.race(2)
        self.assertEqual((faults, kills), ([], 6))


if __name__ == "__main__":
    unittest.main()
