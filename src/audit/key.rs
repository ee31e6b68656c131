//! The key of the next checkpoint. It is used once.

use std::io;
use std::path::{Path, PathBuf};

use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use zeroize::Zeroizing;

use crate::config::private_file;

/// The length of a seed, in bytes.
const SEED: usize = 32;

/// A key, and the seed that it is made of.
pub struct Key {
    seed: Zeroizing<[u8; SEED]>,
    pair: Ed25519KeyPair,
}

impl Key {
    /// A new one.
    pub fn random() -> io::Result<Self> {
        let mut seed = Zeroizing::new([0; SEED]);
        getrandom::fill(&mut *seed).map_err(|error| io::Error::other(error.to_string()))?;
        Self::of(seed)
    }

    fn of(seed: Zeroizing<[u8; SEED]>) -> io::Result<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&*seed).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self { seed, pair })
    }

    /// The one in a file, if it is there.
    pub fn read(file: &Path) -> io::Result<Option<Self>> {
        let bytes = match private_file::read(file, SEED as u64) {
            Ok(bytes) => Zeroizing::new(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let seed = <[u8; SEED]>::try_from(&**bytes);
        let seed = seed.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not a key"))?;
        Self::of(Zeroizing::new(seed)).map(Some)
    }

    /// Puts it into a file.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        private_file::replace(file, &*self.seed)
    }

    /// Its public half, in hexadecimal digits.
    pub fn public(&self) -> String {
        data_encoding::HEXLOWER.encode(self.pair.public_key().as_ref())
    }

    /// A signature, likewise.
    pub fn sign(&self, bytes: &[u8]) -> String {
        data_encoding::HEXLOWER.encode(self.pair.sign(bytes).as_ref())
    }
}

/// Whether a signature is by the private half of a key.
pub fn is_signed(public: &str, bytes: &[u8], signature: &str) -> bool {
    let decode = |text: &str| data_encoding::HEXLOWER.decode(text.as_bytes()).ok();
    let (Some(public), Some(signature)) = (decode(public), decode(signature)) else { return false };
    UnparsedPublicKey::new(&ED25519, public).verify(bytes, &signature).is_ok()
}

/// The file of the key that signs the next checkpoint.
pub fn current(folder: &Path) -> PathBuf {
    folder.join("key")
}

/// The file of the one after it, which a checkpoint names before it takes the first one's place.
pub fn coming(folder: &Path) -> PathBuf {
    folder.join("key.next")
}
