//! Reduces the keeper's memory: releases pages of the program that only the supervisor needs.

/// Releases every page that can be read again from its file. The kernel counts such pages in each process that maps
/// them, although they exist once.
#[cfg(target_os = "linux")]
pub(super) fn give_back() {
    use rustix::mm::{Advice, madvise};

    for (start, end) in unwritten(&std::fs::read_to_string("/proc/self/smaps").unwrap_or_default()) {
        // SAFETY: these are read-only file mappings without modified pages, so a later access reads the same content
        // from the file. This process has a single thread, so the mappings do not change between the listing and the
        // advice.
        #[expect(unsafe_code, reason = "advice on memory of this process; argued above")]
        let _ = unsafe { madvise(std::ptr::without_provenance_mut(start), end - start, Advice::LinuxDontNeed) };
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn give_back() {}

/// Unmodified read-only file mappings, from `/proc/self/smaps`.
#[cfg(target_os = "linux")]
fn unwritten(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut candidate = None;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        if let Some(range) = range(first) {
            // Address, permissions, offset, device, inode, path.
            let is_fit = words.next().is_some_and(|access| access.starts_with('r') && !access.contains(['w', 's']))
                && words.nth(3).is_some_and(|path| path.starts_with('/'));
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
        ];
        assert_eq!(unwritten(&text.concat()), [(0x1000, 0x2000), (0xa000, 0xb000)]);
    }
}
