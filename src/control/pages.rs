//! Who may use the page: a browser that was given a ticket, which is valid once and for a short time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

/// How long a ticket is valid.
pub const TICKET_LIFE: Duration = Duration::from_mins(1);
/// How long a key is valid after its last use.
const KEY_LIFE: Duration = Duration::from_hours(12);
/// The most tickets, and the most keys: a new one takes the place of the oldest.
const MOST: usize = 64;

/// The system gives no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct NoRandom;

/// A secret that cannot be guessed: 64 hexadecimal digits.
pub fn secret() -> Result<String, NoRandom> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| NoRandom)?;
    Ok(bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

/// Compared in place of a secret: how long that takes says nothing of it.
pub fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// The tickets that were given, and the keys that pages got for them. They live as long as this process.
#[derive(Default)]
pub struct Pages {
    /// Locked only to add or to look up.
    valid: Mutex<Valid>,
}

#[derive(Default)]
struct Valid {
    tickets: Expiring,
    keys: Expiring,
}

impl Pages {
    /// A new ticket.
    pub fn ticket(&self, now: Instant) -> Result<String, NoRandom> {
        let ticket = secret()?;
        self.valid.lock().tickets.add(&ticket, now + TICKET_LIFE);
        Ok(ticket)
    }

    /// A key for a page whose person may do everything.
    pub fn key(&self, now: Instant) -> Result<String, NoRandom> {
        let key = secret()?;
        self.valid.lock().keys.add(&key, now + KEY_LIFE);
        Ok(key)
    }

    /// A key for a ticket, which is not valid from here on. `None` if it is not valid now.
    pub fn trade(&self, ticket: &str, now: Instant) -> Result<Option<String>, NoRandom> {
        let key = secret()?;
        let mut valid = self.valid.lock();
        if !valid.tickets.take(ticket, now) {
            return Ok(None);
        }
        valid.keys.add(&key, now + KEY_LIFE);
        Ok(Some(key))
    }

    /// Whether it is the key of a page, which stays valid by being used.
    pub fn knows(&self, key: &str, now: Instant) -> bool {
        let mut valid = self.valid.lock();
        let is_known = valid.keys.take(key, now);
        if is_known {
            valid.keys.add(key, now + KEY_LIFE);
        }
        is_known
    }
}

/// Digests of secrets, each with its end.
#[derive(Default)]
struct Expiring(VecDeque<([u8; 32], Instant)>);

impl Expiring {
    fn add(&mut self, secret: &str, end: Instant) {
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back((digest(secret), end));
    }

    fn take(&mut self, secret: &str, now: Instant) -> bool {
        self.0.retain(|(_, end)| now < *end);
        let digest = digest(secret);
        let place = self.0.iter().position(|(known, _)| *known == digest);
        place.and_then(|place| self.0.remove(place)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_valid_once_and_for_a_minute() {
        let (pages, now) = (Pages::default(), Instant::now());
        let [first, late] = [pages.ticket(now).unwrap(), pages.ticket(now).unwrap()];
        assert!(!pages.knows(&first, now), "a ticket is no key");
        let key = pages.trade(&first, now).unwrap().unwrap();
        assert_eq!(pages.trade(&first, now).unwrap(), None);
        assert_eq!(pages.trade(&key, now).unwrap(), None, "a key is no ticket");
        assert_eq!(pages.trade(&late, now + TICKET_LIFE).unwrap(), None);
        assert_eq!(pages.trade("", now).unwrap(), None);
        assert!(pages.knows(&key, now));
    }

    #[test]
    fn a_key_lives_by_being_used() {
        let (pages, mut now) = (Pages::default(), Instant::now());
        let key = pages.trade(&pages.ticket(now).unwrap(), now).unwrap().unwrap();
        for _ in 0..5 {
            now += KEY_LIFE.mul_f64(0.9);
            assert!(pages.knows(&key, now));
        }
        assert!(!pages.knows(&key, now + KEY_LIFE));
    }

    #[test]
    fn the_oldest_make_room() {
        let (pages, now) = (Pages::default(), Instant::now());
        let first = pages.ticket(now).unwrap();
        let others: Vec<_> = (0..MOST).map(|_| pages.ticket(now).unwrap()).collect();
        assert_eq!(pages.trade(&first, now).unwrap(), None);
        assert!(pages.trade(&others[0], now).unwrap().is_some());
    }
}
