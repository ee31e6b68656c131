//! Keeps resident memory small: releases pages of program text that are not in use.
//!
//! The kernel maps 64 kB around each page that is touched, so two thirds of the resident text is never run. A released
//! page stays in the page cache; touching it again costs a minor fault.

use std::future::Future;
use std::time::Duration;

/// The time from the end of a call to the look at the memory.
const SETTLE: Duration = Duration::from_millis(300);
/// The time that startup may take: the first look comes after it, too.
const STARTUP: Duration = Duration::from_secs(2);
/// Resident file pages, in bytes, above what calls need anyway that make a release worth its faults: a steady load pays
/// once.
const WORTH: usize = 5 << 20;

/// Releases program text that startup or rare work used, a moment after each burst of activity; `active` completes
/// when there was some. An idle process is not woken.
pub async fn keep_trimmed<F: Future<Output = ()>>(active: impl Fn() -> F) {
    let mut usual = Usual(Some(0));
    // A client may list the tools and not call any for long.
    let mut startup = std::pin::pin!(tokio::time::sleep(STARTUP));
    loop {
        tokio::select! {
            () = &mut startup, if !startup.is_elapsed() => {}
            () = active() => tokio::time::sleep(SETTLE).await,
        }
        let Some(held) = file_pages() else { return };
        if usual.is_exceeded(held) {
            release(&Which::TextOf(program()));
            tracing::debug!(before = held, after = file_pages(), "released program text");
        }
    }
}

/// Releases the pages of this process's files: for a process with one thread that waits from here on.
pub fn release_text() {
    release(&Which::All);
}

/// The resident file pages that calls need anyway, in bytes: measured at the first look after a release.
struct Usual(Option<usize>);

impl Usual {
    /// Whether a release is worth its faults now.
    fn is_exceeded(&mut self, held: usize) -> bool {
        let is_exceeded = held > *self.0.get_or_insert(held) + WORTH;
        if is_exceeded {
            self.0 = None;
        }
        is_exceeded
    }
}

/// The mappings whose pages may be released.
pub(super) enum Which {
    /// Every file mapping: only for a process with one thread, which cannot unmap one meanwhile.
    All,
    /// The text of the program with this path: unlike a library, it is never unloaded by another thread.
    TextOf(#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "nothing is released there"))] String),
}

#[cfg(target_os = "linux")]
impl Which {
    fn has(&self, access: &str, path: &str) -> bool {
        let is_fit = access.starts_with('r') && !access.contains(['w', 's']);
        is_fit
            && match self {
                Self::All => true,
                Self::TextOf(program) => access.contains('x') && path == program,
            }
    }
}

/// The running program as the system lists it, also after an update has replaced it.
fn program() -> String {
    std::fs::read_link("/proc/self/exe").unwrap_or_default().to_string_lossy().into_owned()
}

/// Releases every page that can be read again from its file. The kernel counts such pages in each process that maps
/// them, although they exist once.
#[cfg(target_os = "linux")]
pub(super) fn release(which: &Which) {
    use rustix::mm::{Advice, madvise};

    for (start, end) in unmodified(which, &std::fs::read_to_string("/proc/self/smaps").unwrap_or_default()) {
        // SAFETY: these are read-only file mappings without modified pages, so a later access reads the same content
        // from the file. `Which` says why no mapping is replaced between the listing and the advice.
        #[expect(unsafe_code, reason = "advice on memory of this process; argued above")]
        let _ = unsafe { madvise(std::ptr::without_provenance_mut(start), end - start, Advice::LinuxDontNeed) };
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn release(_: &Which) {}

/// Resident pages of files, in bytes; `None` where this system does not show it.
#[cfg(target_os = "linux")]
fn file_pages() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = text.split_whitespace().nth(2)?.parse().ok()?;
    Some(pages * rustix::param::page_size())
}

#[cfg(not(target_os = "linux"))]
fn file_pages() -> Option<usize> {
    None
}

/// Unmodified read-only file mappings, from `/proc/self/smaps`.
#[cfg(target_os = "linux")]
fn unmodified(which: &Which, text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut candidate = None;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        if let Some(range) = range(first) {
            // Address, permissions, offset, device, inode, path.
            let access = words.next().unwrap_or_default();
            let is_fit = line.find('/').is_some_and(|path| which.has(access, &line[path..]));
            candidate = is_fit.then_some(range);
        } else if first == "Anonymous:" {
            // Modified pages are private: the loader writes addresses into pages that become read-only later.
            found.extend(candidate.take().filter(|_| words.next() == Some("0")));
        }
    }
    found
}

#[cfg(target_os = "linux")]
fn range(word: &str) -> Option<(usize, usize)> {
    let (start, end) = word.split_once('-')?;
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?)).filter(|(a, b)| a < b)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_steady_load_pays_for_one_release() {
        let mut usual = Usual(Some(0));
        let looks = [11, 8, 8, 9, 8, 14, 8, 8];
        let released = looks.map(|megabytes| usual.is_exceeded(megabytes << 20));
        assert_eq!(released, [true, false, false, false, false, true, false, false]);
    }

    #[test]
    fn only_unmodified_file_pages_are_released() {
        let one =
            |header: &str, anonymous: u32| format!("{header}\nRss: 8 kB\nAnonymous: {anonymous} kB\nVmFlags: rd\n");
        let text = [
            one("1000-2000 r-xp 00000000 fe:00 12 /bin/hostler", 0),
            one("2000-3000 r--p 00000000 fe:00 12 /bin/hostler", 4),
            one("3000-4000 rw-p 00000000 fe:00 12 /bin/hostler", 0),
            one("4000-5000 r--s 00000000 fe:00 12 /dev/shm/x", 0),
            one("5000-6000 r-xp 00000000 00:00 0 [vdso]", 0),
            one("6000-7000 r--p 00000000 00:00 0", 0),
            one("a000-b000 r--p 00000000 fe:00 13 /lib/libc.so.6", 0),
            one("c000-d000 r-xp 00000000 fe:00 13 /lib/libc.so.6", 0),
        ];
        assert_eq!(unmodified(&Which::All, &text.concat()), [(0x1000, 0x2000), (0xa000, 0xb000), (0xc000, 0xd000)]);
        assert_eq!(unmodified(&Which::TextOf("/bin/hostler".to_owned()), &text.concat()), [(0x1000, 0x2000)]);
    }
}
