//! The sweep at the start: ends what earlier runs of hostler left behind when they were killed with their keepers.

use std::collections::HashSet;

use rustix::process::getpid;

use super::family;
use super::lineage::{Run, Standing};
use super::table;

/// Ends every process of this user that carries the mark of a run which is over, with what descends from it; tells how
/// many those were. What belongs to a run that lives, or that this process cannot judge, is left alone.
///
/// It looks at every process of the machine: not for a thread that has something else to do.
pub fn sweep() -> usize {
    let Some(own) = Run::own() else { return 0 };
    // A tool of such a run may have started this hostler, or whoever started it.
    let spared = table::ancestors(getpid());
    // Who was killed is in the table until it has died.
    let mut swept = HashSet::new();
    for pid in table::all().into_iter().filter(|pid| *pid != getpid() && !spared.contains(pid)) {
        let Some(mark) = table::mark(pid).filter(|mark| is_left_over(own, own.standing_now(&mark.run), &mark.run))
        else {
            continue;
        };
        // Held on to, it is asked once more: the number may have passed to another since.
        let is_same = |_: &table::Row| table::mark(pid).as_ref() == Some(&mark);
        let below = family::kill_below(pid);
        let own = family::kill_if(pid, is_same).map(|row| (pid, row));
        for (pid, row) in below.into_iter().chain(own).filter(|(pid, _)| swept.insert(*pid)) {
            tracing::warn!(%pid, name = row.name, run = mark.run.pid, "ended what a killed hostler had left behind");
        }
    }
    tracing::debug!(ended = swept.len(), "looked for what killed hostlers had left behind");
    swept.len()
}

/// Whether what carries the mark of a run is to be ended.
fn is_left_over(own: &Run, standing: Standing, run: &Run) -> bool {
    standing == Standing::Over && run != own
}

#[cfg(test)]
mod tests {
    use super::super::lineage::tests::run;
    use super::*;

    #[test]
    fn only_what_is_over_for_certain_is_swept() {
        let (own, other) = (run(1, 1), run(2, 2));
        assert!(is_left_over(&own, Standing::Over, &other));
        assert!(!is_left_over(&own, Standing::Living, &other));
        assert!(!is_left_over(&own, Standing::Elsewhere, &other), "another namespace's runs cannot be judged");
        assert!(!is_left_over(&own, Standing::Over, &own), "this run lives, whatever the table says");
    }
}
