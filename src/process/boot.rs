//! Which boot of the machine this is, and what the time is in it.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use sha2::{Digest, Sha256};

/// A point in time that can be compared with others of the same boot whatever is done to the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// The boot.
    pub boot: u64,
    /// Milliseconds since the boot, with those in which the machine slept.
    pub since_boot: i64,
    /// Milliseconds of the wall clock since 1970.
    pub wall: i64,
}

impl Moment {
    /// Now.
    pub fn now() -> Self {
        static BOOT: OnceLock<u64> = OnceLock::new();
        let boot = BOOT.get_or_init(|| {
            // In a time namespace, the time since the boot is another one.
            let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
            let digest = Sha256::digest(format!("{} {}", boot_id(), namespace.display()));
            u64::from_le_bytes(std::array::from_fn(|index| digest[index]))
        });
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        Self { boot: *boot, since_boot: since_boot(), wall: i64::try_from(wall).unwrap_or(i64::MAX) }
    }
}

fn since_boot() -> i64 {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    let now = clock_gettime(clock);
    now.tv_sec.saturating_mul(1000).saturating_add(now.tv_nsec / 1_000_000)
}

/// Which boot of the machine this is. Without it, each process is of a boot of its own.
pub fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let is_plain =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    Some(id.trim()).filter(|id| is_plain(id)).map_or_else(|| format!("process-{}", std::process::id()), str::to_owned)
}
