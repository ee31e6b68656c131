"""A short storm, and that a storm sees what it is to see."""

import unittest

import journal_storm
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

    def test_no_acknowledged_call_is_lost_or_made_twice(self):
        told = journal_storm.storm(10, seed=1)
        self.assertEqual(told.faults(), [], told)

    def test_every_broken_promise_of_the_journal_is_seen(self):
        # A hostler without locks ends the calls of a living one: their results are not what is remembered.
        seen = {"written-before-said": ["lost"], "locks-hold": ["lost", "made twice", "told otherwise"],
                "keys-are-taken-once": ["keys with two calls"]}
        for promise, kinds in seen.items():
            with self.subTest(promise):
                # Whether one storm meets the broken promise is chance.
                storms = (journal_storm.storm(8, seed=seed, sabotage=promise, patience=3) for seed in (2, 3, 4, 5))
                self.assertTrue(any(set(kinds) & set(told.faults_of) for told in storms))


if __name__ == "__main__":
    unittest.main()
