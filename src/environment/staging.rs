//! The folders in which environments are built, beside the finished ones.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use data_encoding::HEXLOWER;

use super::store::age;

/// The prefix of a staging folder's name; the environment's key and a random number follow.
pub(super) const STAGING: &str = ".staging.";
/// The file in a staging folder that its builder holds locked.
const IN_USE: &str = "in-use";
/// A staging folder without that file is in the making.
const MAKING: Duration = Duration::from_mins(1);
/// How often its removal is tried, and the pause between: a killed process dies within milliseconds.
const REMOVALS: u32 = 20;
const REMOVAL_PAUSE: Duration = Duration::from_millis(5);

/// A folder beside the environments that is removed when the build ends, however it ends.
pub(super) struct Staging {
    folder: PathBuf,
    _in_use: File,
}

impl Staging {
    /// Removes what dead builders of this environment left. Others may be at work beside this one.
    pub fn alone(folder: &Path, key: &str) -> io::Result<Self> {
        let left = std::fs::read_dir(folder)?.flatten();
        let is_of_key = |name: &str| name.strip_prefix(STAGING).is_some_and(|rest| rest.split('.').next() == Some(key));
        let of_key = left.filter(|entry| entry.file_name().to_str().is_some_and(is_of_key));
        for left in of_key.map(|entry| entry.path()).filter(|left| is_abandoned(left)) {
            let _ = std::fs::remove_dir_all(left);
        }
        Self::beside(folder, key)
    }

    pub fn beside(folder: &Path, key: &str) -> io::Result<Self> {
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(io::Error::other)?;
        let place = folder.join(format!("{STAGING}{key}.{}", HEXLOWER.encode(&number)));
        std::fs::create_dir_all(&place)?;
        let in_use = File::create(place.join(IN_USE))?;
        in_use.try_lock().map_err(io::Error::from)?;
        Ok(Self { folder: place, _in_use: in_use })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn environment(&self) -> PathBuf {
        self.folder.join("environment")
    }
}

/// Whether the builder of a staging folder is dead.
fn is_abandoned(staging: &Path) -> bool {
    match File::open(staging.join(IN_USE)) {
        Ok(file) => file.try_lock().is_ok(),
        Err(_) => age(staging).is_some_and(|age| age > MAKING),
    }
}

impl Drop for Staging {
    /// A uv that was just killed may still write its last file.
    fn drop(&mut self) {
        for _ in 0..REMOVALS {
            let removed = std::fs::remove_dir_all(&self.folder);
            if removed.is_ok() || removed.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
                return;
            }
            std::thread::sleep(REMOVAL_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_builder_left_is_removed_and_what_a_living_one_uses_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let living = Staging::beside(folder.path(), "k").unwrap();
        let other = Staging::beside(folder.path(), "other").unwrap();
        let dead = folder.path().join(".staging.k.dead");
        std::fs::create_dir(&dead).unwrap();
        std::fs::write(dead.join(IN_USE), "").unwrap();
        let new = folder.path().join(".staging.k.new");
        std::fs::create_dir(&new).unwrap();
        let own = Staging::alone(folder.path(), "k").unwrap();
        for used in [living.folder(), other.folder(), own.folder(), &new] {
            assert!(used.is_dir(), "{}", used.display());
        }
        assert!(!dead.exists());
        let places = [&living, &own].map(|staging| staging.folder().to_owned());
        drop((living, own));
        assert!(places.iter().all(|place| !place.exists()));
    }
}
