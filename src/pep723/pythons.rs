//! Which versions of Python a `requires-python` leaves over, and what to write where it leaves none that serves.

use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifiers};

/// The oldest Python that workers run on.
pub const OLDEST_PYTHON: (u64, u64) = (3, 9);
/// Beyond what there will be in some years.
const MINORS: u64 = 40;
/// More patch versions than any minor version has had.
const PATCHES: u64 = 30;

/// Why no worker can ever run on what a range leaves over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hindrance {
    /// Its clauses leave no version over.
    Empty,
    /// Only versions older than workers run on.
    TooOld,
    /// Only versions that there are not.
    NotYet,
}

impl Hindrance {
    /// The hindrance of a range that is one.
    pub fn of(text: &str) -> Option<Self> {
        Self::of_range(&VersionSpecifiers::from_str(text).ok()?)
    }

    /// What keeps workers from running on any version of this range.
    pub fn of_range(range: &VersionSpecifiers) -> Option<Self> {
        let all = (2..=4).flat_map(|major| (0..MINORS).map(move |minor| (major, minor)));
        if !all.into_iter().any(|minor| some_patch_fits(minor, range)) {
            return Some(Self::Empty);
        }
        if oldest_minor(range).is_some() {
            return None;
        }
        let older = (0..OLDEST_PYTHON.1).map(|minor| (OLDEST_PYTHON.0, minor)).chain([(2, 7)]);
        Some(if older.into_iter().any(|minor| some_patch_fits(minor, range)) { Self::TooOld } else { Self::NotYet })
    }

    /// What is wrong with a range, by the name it is to have in the sentence, and what to write instead.
    pub fn told(self, range: &str) -> (String, &'static str) {
        match self {
            Self::Empty => {
                let fix = "let its clauses leave some version over, like \">=3.11\"";
                (format!("no version of Python fits {range}"), fix)
            }
            Self::TooOld => {
                let message = format!("{range} allows only versions older than hostler's workers run on (3.9)");
                (message, "write \">=3.9\" or newer")
            }
            Self::NotYet => {
                let fix = "write the oldest version that will do, like \">=3.11\"";
                (format!("{range} allows only versions that there are not"), fix)
            }
        }
    }
}

/// The oldest version of this range that workers run on.
pub fn oldest_minor(range: &VersionSpecifiers) -> Option<(u64, u64)> {
    (OLDEST_PYTHON.1..MINORS).map(|minor| (OLDEST_PYTHON.0, minor)).find(|minor| some_patch_fits(*minor, range))
}

/// Whether the range has a patch version of this minor version.
pub fn some_patch_fits((major, minor): (u64, u64), range: &VersionSpecifiers) -> bool {
    (0..PATCHES).any(|patch| range.contains(&Version::new([major, minor, patch])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_nothing_can_run_on_are_told_apart() {
        for (text, hindrance) in [
            (">=3.9", None),
            ("==3.11.4", None),
            (">=3.11,<3.11.0", Some(Hindrance::Empty)),
            (">3.12,<3.11", Some(Hindrance::Empty)),
            ("==3.7.*", Some(Hindrance::TooOld)),
            ("<3", Some(Hindrance::TooOld)),
            (">=4.0", Some(Hindrance::NotYet)),
        ] {
            assert_eq!(Hindrance::of(text), hindrance, "{text}");
        }
        let range = VersionSpecifiers::from_str(">=3.8,<3.11").unwrap();
        assert_eq!(oldest_minor(&range), Some((3, 9)));
    }
}
