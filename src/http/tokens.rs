//! The tokens of the control face: one for each scope, in a file that only its owner may read.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::geteuid;

use crate::config::Environment;
use crate::config::environment::state;
use crate::config::private_file::replace;
use crate::control::{NoRandom, Scope, digest, secret};

/// How often the file is read again, so that a renewed token is in force soon.
const FRESH: Duration = Duration::from_secs(1);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    System {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Others may know what it holds.
    #[error("{0} is not private to you; remove it, and new tokens are made")]
    Open(PathBuf),
    /// It holds something else.
    #[error("{0} holds no tokens; remove it, and new ones are made")]
    Invalid(PathBuf),
    /// The system gives no random bytes.
    #[error(transparent)]
    Random(#[from] NoRandom),
}

/// The token of a scope; made if it does not exist, and made anew if `renew` is set.
pub fn token(environment: &Environment, scope: Scope, renew: bool) -> Result<String, TokenError> {
    let path = file(environment);
    let failed = |source| TokenError::System { path: path.clone(), source };
    // Another process may do the same.
    let _lock = lock(&path).map_err(failed)?;
    let (mut tokens, is_new) = match read(&path) {
        Ok(tokens) => (tokens, false),
        Err(TokenError::System { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            ([secret()?, secret()?, secret()?], true)
        }
        Err(error) => return Err(error),
    };
    let place = Scope::ALL.iter().position(|one| *one == scope).unwrap_or_default();
    if renew {
        tokens[place] = secret()?;
    }
    if renew || is_new {
        write(&path, &tokens).map_err(failed)?;
    }
    Ok(std::mem::take(&mut tokens[place]))
}

/// Held as long as the file is read and replaced.
fn lock(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let lock =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path.with_extension("lock"))?;
    lock.lock()?;
    Ok(lock)
}

fn file(environment: &Environment) -> PathBuf {
    state(environment).join("tokens")
}

fn write(path: &Path, tokens: &[String; 3]) -> io::Result<()> {
    let lines = Scope::ALL.iter().zip(tokens).map(|(scope, token)| format!("{} {token}\n", scope.word()));
    replace(path, lines.collect::<String>().as_bytes())
}

fn read(path: &Path) -> Result<[String; 3], TokenError> {
    let failed = |source| TokenError::System { path: path.to_owned(), source };
    let facts = fs::metadata(path).map_err(failed)?;
    if facts.uid() != geteuid().as_raw() || facts.mode() & 0o077 != 0 {
        return Err(TokenError::Open(path.to_owned()));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    let mut lines = text.lines();
    let mut next = |scope: &Scope| {
        let token = lines.next()?.strip_prefix(scope.word())?.strip_prefix(' ')?;
        (token.len() == 64).then(|| token.to_owned())
    };
    let all = [next(&Scope::ALL[0]), next(&Scope::ALL[1]), next(&Scope::ALL[2])];
    let [Some(observe), Some(call), Some(operate)] = all else { return Err(TokenError::Invalid(path.to_owned())) };
    Ok([observe, call, operate])
}

/// The tokens in force.
pub struct Tokens {
    environment: Environment,
    /// Hashes, which are compared in place of the tokens: how long that takes says nothing of them. Locked to compare.
    known: Mutex<Option<(Instant, [[u8; 32]; 3])>>,
}

impl Tokens {
    /// Those of a person. Makes them if there are none.
    pub fn of(environment: &Environment) -> Result<Self, TokenError> {
        let tokens = Self { environment: environment.clone(), known: Mutex::default() };
        token(environment, Scope::Observe, false)?;
        Ok(tokens)
    }

    /// What the holder of a token may do.
    pub fn scope_of(&self, token: &str) -> Option<Scope> {
        let hash = digest(token);
        let mut known = self.known.lock();
        if known.is_none_or(|(read, _)| read.elapsed() > FRESH) {
            // Without a file that can be read, there is no valid token.
            let tokens = read(&file(&self.environment)).ok()?;
            *known = Some((Instant::now(), tokens.map(|token| digest(&token))));
        }
        let hashes = known.as_ref().map(|(_, hashes)| *hashes)?;
        Scope::ALL.into_iter().zip(hashes).find(|(_, known)| *known == hash).map(|(scope, _)| scope)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn person(folder: &Path) -> Environment {
        [(OsString::from("XDG_STATE_HOME"), folder.as_os_str().to_owned())].into_iter().collect()
    }

    #[test]
    fn each_scope_has_a_token_that_can_be_renewed() {
        let folder = tempfile::tempdir().unwrap();
        let person = person(folder.path());
        let tokens = Tokens::of(&person).unwrap();
        for scope in Scope::ALL {
            let own = token(&person, scope, false).unwrap();
            assert_eq!(tokens.scope_of(&own), Some(scope));
            assert_eq!(tokens.scope_of(&own[..63]), None);
        }
        let (call, operate) =
            (token(&person, Scope::Call, false).unwrap(), token(&person, Scope::Operate, false).unwrap());
        let renewed = token(&person, Scope::Call, true).unwrap();
        tokens.known.lock().take();
        assert_eq!((tokens.scope_of(&call), tokens.scope_of(&renewed)), (None, Some(Scope::Call)));
        assert_eq!(tokens.scope_of(&operate), Some(Scope::Operate), "the others stay");
    }

    #[test]
    fn what_is_renewed_at_once_is_all_renewed() {
        let folder = tempfile::tempdir().unwrap();
        let person = person(folder.path());
        let renew = |scope| (0..20).map(|_| token(&person, scope, true).unwrap()).reduce(|_, last| last).unwrap();
        let last = std::thread::scope(|all| {
            Scope::ALL.map(|scope| all.spawn(move || renew(scope))).map(|thread| thread.join().unwrap())
        });
        assert_eq!(Scope::ALL.map(|scope| token(&person, scope, false).unwrap()), last);
    }

    #[test]
    fn a_file_that_others_may_read_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let person = person(folder.path());
        let own = token(&person, Scope::Call, false).unwrap();
        let path = file(&person);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let tokens = Tokens { environment: person.clone(), known: Mutex::default() };
        assert_eq!(tokens.scope_of(&own), None);
        assert!(matches!(token(&person, Scope::Call, false), Err(TokenError::Open(_))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "observe 1\n").unwrap();
        assert!(matches!(token(&person, Scope::Call, false), Err(TokenError::Invalid(_))));
    }
}
