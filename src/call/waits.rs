//! Which files' running calls wait for other files, and whether that is a deadlock. Pure.
//!
//! A file runs a limited number of calls at once. If all of them wait for files in the same situation, none ever ends; the
//! call that would complete such a cycle is refused.

use std::collections::BTreeMap;

/// A running call of one file that waits for a call of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wait {
    /// The pack of the running call.
    pub from: String,
    /// The pack it waits for.
    pub to: String,
    /// How much of its file's capacity it uses: all of its worker's when it blocks the event loop.
    pub uses: usize,
    /// The capacity of its file.
    pub capacity: usize,
}

#[derive(Debug, Default)]
pub(super) struct WaitGraph(Vec<Wait>);

impl WaitGraph {
    /// Adds a wait, unless it would be a deadlock. The error lists the files of the cycle, from the one waited for
    /// to the waiting one.
    pub fn enter(&mut self, wait: Wait) -> Result<(), Vec<String>> {
        self.0.push(wait);
        let stuck = self.stuck();
        let Some(wait) = self.0.last().filter(|wait| stuck.contains_key(wait.to.as_str())) else { return Ok(()) };
        let path = self.path(&wait.to, &wait.from, &stuck);
        self.0.pop();
        Err(path)
    }

    /// Removes a wait.
    pub fn leave(&mut self, wait: &Wait) {
        if let Some(index) = self.0.iter().position(|other| other == wait) {
            self.0.swap_remove(index);
        }
    }

    /// The largest set of files whose whole capacity waits for files in the set.
    fn stuck(&self) -> BTreeMap<&str, usize> {
        let mut stuck: BTreeMap<&str, usize> = self.0.iter().map(|wait| (wait.from.as_str(), wait.capacity)).collect();
        loop {
            let taken = |file: &str| -> usize {
                let waits = self.0.iter().filter(|wait| wait.from == file && stuck.contains_key(wait.to.as_str()));
                waits.map(|wait| wait.uses).sum()
            };
            let free: Vec<&str> =
                stuck.iter().filter(|(file, capacity)| taken(file) < **capacity).map(|(file, _)| *file).collect();
            if free.is_empty() {
                return stuck;
            }
            for file in free {
                stuck.remove(file);
            }
        }
    }

    /// The shortest-known path of waits from one file to another, both included.
    fn path(&self, from: &str, to: &str, among: &BTreeMap<&str, usize>) -> Vec<String> {
        let mut paths = vec![vec![from]];
        let mut seen = vec![from];
        while let Some(path) = paths.pop() {
            let last = path.last().copied().unwrap_or_default();
            if last == to {
                return path.into_iter().map(str::to_owned).collect();
            }
            for wait in self.0.iter().filter(|wait| wait.from == last && among.contains_key(wait.to.as_str())) {
                if !seen.contains(&wait.to.as_str()) {
                    seen.push(&wait.to);
                    paths.push([&path[..], &[wait.to.as_str()]].concat());
                }
            }
        }
        vec![from.to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(from: &str, to: &str, uses: usize, capacity: usize) -> Wait {
        Wait { from: from.to_owned(), to: to.to_owned(), uses, capacity }
    }

    #[test]
    fn two_files_with_capacity_for_one_call_may_not_wait_for_each_other() {
        let mut waits = WaitGraph::default();
        assert_eq!(waits.enter(wait("a", "b", 1, 1)), Ok(()));
        assert_eq!(waits.enter(wait("b", "a", 1, 1)), Err(vec!["a".to_owned(), "b".to_owned()]));
        waits.leave(&wait("a", "b", 1, 1));
        assert_eq!(waits.enter(wait("b", "a", 1, 1)), Ok(()), "the other wait has ended");
    }

    #[test]
    fn spare_capacity_lets_a_call_start() {
        let mut waits = WaitGraph::default();
        for _ in 0..2 {
            assert_eq!(waits.enter(wait("a", "b", 1, 2)), Ok(()));
        }
        assert_eq!(waits.enter(wait("b", "a", 1, 2)), Ok(()), "b has capacity left, so the calls of a continue");
        assert!(waits.enter(wait("b", "a", 1, 2)).is_err(), "b would have no capacity left");
    }

    #[test]
    fn a_call_that_blocks_the_loop_uses_the_whole_capacity_of_its_worker() {
        let mut waits = WaitGraph::default();
        assert_eq!(waits.enter(wait("a", "b", 4, 4)), Ok(()));
        assert!(waits.enter(wait("b", "a", 4, 4)).is_err());
        assert_eq!(waits.enter(wait("b", "a", 1, 4)), Ok(()));
    }

    #[test]
    fn a_path_through_files_with_spare_capacity_is_no_cycle() {
        let mut waits = WaitGraph::default();
        assert_eq!(waits.enter(wait("a", "b", 1, 1)), Ok(()));
        assert_eq!(waits.enter(wait("b", "c", 1, 2)), Ok(()));
        assert_eq!(waits.enter(wait("c", "a", 1, 1)), Ok(()), "b has capacity for another");
        assert_eq!(waits.enter(wait("b", "c", 1, 2)).unwrap_err(), ["c", "a", "b"]);
    }
}
