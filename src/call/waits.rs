//! Which files' running calls wait for other files, and whether that could go on for ever.
//!
//! A file runs so many calls at once. One all of whose places are taken by calls that wait for such files can begin nothing
//! until one of them ends, and none of them does: whoever would make it so is refused instead. Pure.

use std::collections::BTreeMap;

/// A running call of one file that waits for a call of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wait {
    /// The pack of the call that runs.
    pub from: String,
    /// The pack it waits for.
    pub to: String,
    /// How many of its file's places it takes: all of a worker's where it holds up the event loop.
    pub takes: usize,
    /// How many places its file has.
    pub places: usize,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Waits(Vec<Wait>);

impl Waits {
    /// Notes one, unless what it waits for could never begin. Then it tells the files from the one that is waited for to the
    /// one that waits, each of which waits for the next.
    pub fn enter(&mut self, wait: Wait) -> Result<(), Vec<String>> {
        self.0.push(wait);
        let stuck = self.stuck();
        let Some(wait) = self.0.last().filter(|wait| stuck.contains_key(wait.to.as_str())) else { return Ok(()) };
        let way = self.way(&wait.to, &wait.from, &stuck);
        self.0.pop();
        Err(way)
    }

    /// One is over.
    pub fn leave(&mut self, wait: &Wait) {
        if let Some(place) = self.0.iter().position(|other| other == wait) {
            self.0.swap_remove(place);
        }
    }

    /// The files all of whose places wait for such files: the largest set of which that is true.
    fn stuck(&self) -> BTreeMap<&str, usize> {
        let mut stuck: BTreeMap<&str, usize> = self.0.iter().map(|wait| (wait.from.as_str(), wait.places)).collect();
        loop {
            let taken = |file: &str| -> usize {
                let waits = self.0.iter().filter(|wait| wait.from == file && stuck.contains_key(wait.to.as_str()));
                waits.map(|wait| wait.takes).sum()
            };
            let free: Vec<&str> =
                stuck.iter().filter(|(file, places)| taken(file) < **places).map(|(file, _)| *file).collect();
            if free.is_empty() {
                return stuck;
            }
            for file in free {
                stuck.remove(file);
            }
        }
    }

    /// The files from one to another along who waits for whom, both included; as far as there is such a way.
    fn way(&self, from: &str, to: &str, among: &BTreeMap<&str, usize>) -> Vec<String> {
        let mut ways = vec![vec![from]];
        let mut seen = vec![from];
        while let Some(way) = ways.pop() {
            let last = way.last().copied().unwrap_or_default();
            if last == to {
                return way.into_iter().map(str::to_owned).collect();
            }
            for wait in self.0.iter().filter(|wait| wait.from == last && among.contains_key(wait.to.as_str())) {
                if !seen.contains(&wait.to.as_str()) {
                    seen.push(&wait.to);
                    ways.push([&way[..], &[wait.to.as_str()]].concat());
                }
            }
        }
        vec![from.to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(from: &str, to: &str, takes: usize, places: usize) -> Wait {
        Wait { from: from.to_owned(), to: to.to_owned(), takes, places }
    }

    #[test]
    fn two_files_of_one_place_each_may_not_wait_for_each_other() {
        let mut waits = Waits::default();
        assert_eq!(waits.enter(wait("a", "b", 1, 1)), Ok(()));
        assert_eq!(waits.enter(wait("b", "a", 1, 1)), Err(vec!["a".to_owned(), "b".to_owned()]));
        waits.leave(&wait("a", "b", 1, 1));
        assert_eq!(waits.enter(wait("b", "a", 1, 1)), Ok(()), "the other is over");
    }

    #[test]
    fn places_that_are_left_let_a_call_begin() {
        let mut waits = Waits::default();
        for _ in 0..2 {
            assert_eq!(waits.enter(wait("a", "b", 1, 2)), Ok(()));
        }
        assert_eq!(waits.enter(wait("b", "a", 1, 2)), Ok(()), "b has a place left, so those of a go on");
        assert!(waits.enter(wait("b", "a", 1, 2)).is_err(), "and now it would have none");
    }

    #[test]
    fn a_call_that_holds_up_the_loop_takes_all_places_of_its_worker() {
        let mut waits = Waits::default();
        assert_eq!(waits.enter(wait("a", "b", 4, 4)), Ok(()));
        assert!(waits.enter(wait("b", "a", 4, 4)).is_err());
        assert_eq!(waits.enter(wait("b", "a", 1, 4)), Ok(()));
    }

    #[test]
    fn a_way_through_files_that_are_not_full_is_none() {
        let mut waits = Waits::default();
        assert_eq!(waits.enter(wait("a", "b", 1, 1)), Ok(()));
        assert_eq!(waits.enter(wait("b", "c", 1, 2)), Ok(()));
        assert_eq!(waits.enter(wait("c", "a", 1, 1)), Ok(()), "b may take another");
        assert_eq!(waits.enter(wait("b", "c", 1, 2)).unwrap_err(), ["c", "a", "b"]);
    }
}
