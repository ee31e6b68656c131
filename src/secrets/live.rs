//! The secrets that are in use in a workspace: every text that leaves hostler is searched for all of them.

use std::sync::Arc;

use parking_lot::Mutex;

use super::redactor::{KnownSecret, Redactor};

/// The values that are kept of one name when no call uses them any more: a secret that changes is likely to appear soon or never.
const VALUES: usize = 4;
/// The secrets that are kept when no call uses them any more.
const SECRETS: usize = 256;
/// The bytes that these may have.
const BYTES: usize = 256 << 10;

/// The secrets that were read in a workspace.
#[derive(Debug, Default)]
pub struct LiveSecrets {
    /// Locked only briefly, and while a redactor is made.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The least recently read first.
    known: Vec<(KnownSecret, Arc<()>)>,
    redactor: Option<Arc<Redactor>>,
    /// Whether the redactor does not find all of them.
    is_outdated: bool,
}

/// Keeps secrets among the live ones.
#[derive(Debug, Default)]
pub struct Lease {
    _secrets: Vec<Arc<()>>,
}

impl LiveSecrets {
    /// Adds secrets. They stay as long as the lease does; afterwards the newest stay.
    pub fn add(&self, secrets: &[KnownSecret]) -> Lease {
        let mut state = self.state.lock();
        let mut held = Vec::with_capacity(secrets.len());
        for secret in secrets {
            let known = state.known.iter().position(|(known, _)| known == secret);
            let (secret, uses) = known.map_or_else(|| (secret.clone(), Arc::default()), |at| state.known.remove(at));
            held.push(Arc::clone(&uses));
            state.known.push((secret, uses));
            state.is_outdated |= known.is_none();
        }
        if state.is_outdated {
            state.forget();
        }
        Lease { _secrets: held }
    }

    /// What finds all of them; `None` if there is nothing to find.
    pub fn redactor(&self) -> Option<Arc<Redactor>> {
        let mut state = self.state.lock();
        if std::mem::take(&mut state.is_outdated) {
            state.redactor = Redactor::finding(state.known.iter().map(|(secret, _)| secret.clone()).collect());
        }
        state.redactor.clone()
    }
}

impl State {
    /// Forgets old secrets that no call uses.
    fn forget(&mut self) {
        let (mut kept, mut secrets, mut bytes) = (Vec::new(), 0, 0);
        for (secret, uses) in std::mem::take(&mut self.known).into_iter().rev() {
            let of_name = kept.iter().filter(|(other, _): &&(KnownSecret, _)| other.name == secret.name).count();
            let fits = of_name < VALUES && secrets < SECRETS && bytes + secret.value.len() <= BYTES;
            if Arc::strong_count(&uses) > 1 || fits {
                secrets += 1;
                bytes += secret.value.len();
                kept.push((secret, uses));
            }
        }
        kept.reverse();
        self.known = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: usize) -> [KnownSecret; 1] {
        [KnownSecret::new("TOKEN", &format!("token-{number:04}"))]
    }

    fn clean(live: &LiveSecrets, text: &str) -> String {
        live.redactor().map_or_else(|| text.to_owned(), |redactor| redactor.text(text).into_owned())
    }

    #[test]
    fn a_redactor_is_made_once_for_what_is_known() {
        let live = LiveSecrets::default();
        assert!(live.redactor().is_none());
        let _lease = live.add(&token(1));
        let first = live.redactor().unwrap();
        drop(live.add(&token(1)));
        assert!(Arc::ptr_eq(&first, &live.redactor().unwrap()), "nothing is new");
        drop(live.add(&[KnownSecret::new("KEY", "sesame")]));
        assert_eq!(clean(&live, "token-0001 sesame"), "[secret TOKEN] [secret KEY]");
    }

    #[test]
    fn a_secret_that_changes_with_every_call_is_forgotten_when_its_call_has_ended() {
        let live = LiveSecrets::default();
        let running = live.add(&token(0));
        for number in 1..200 {
            drop(live.add(&token(number)));
        }
        assert_eq!(
            clean(&live, "token-0000 token-0195 token-0196 token-0199"),
            "[secret TOKEN] token-0195 [secret TOKEN] [secret TOKEN]",
            "the one in use, and the newest"
        );
        drop(running);
        drop(live.add(&token(200)));
        drop(live.add(&token(201)));
        assert_eq!(clean(&live, "token-0000"), "token-0000");
    }

    #[test]
    fn the_bytes_that_are_kept_are_limited() {
        let live = LiveSecrets::default();
        let large = |name: &str| [KnownSecret::new(name, &format!("{name}{}", "x".repeat(BYTES / 2)))];
        for name in ["A", "B", "C"] {
            drop(live.add(&large(name)));
        }
        assert_eq!(live.state.lock().known.iter().map(|(secret, _)| secret.name.as_str()).collect::<Vec<_>>(), ["C"]);
    }
}
