//! Makes the keeper small: pages of the program that it has seen as hostler and will not need as the keeper.

/// Gives back every page that can be read again from the file it came from. The kernel counts such pages for each process
/// that has them, though the memory is there once.
#[cfg(target_os = "linux")]
pub(super) fn give_back() {
    use rustix::mm::{Advice, madvise};

    for (start, end) in unwritten(&std::fs::read_to_string("/proc/self/smaps").unwrap_or_default()) {
        // SAFETY: these are mappings of files that cannot be written to and hold no page that ever was, so what is read
        // there afterwards comes from the file again and is the same. This process has one thread, and so no other one
        // that maps or unmaps between the look and the advice.
        #[expect(unsafe_code, reason = "advice on memory of this process; argued above")]
        let _ = unsafe { madvise(std::ptr::without_provenance_mut(start), end - start, Advice::LinuxDontNeed) };
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn give_back() {}

/// Where files are mapped for reading and nothing was changed since, as `/proc/self/smaps` tells it.
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
            // Changed pages are the process's own: the loader writes addresses into what is read-only later.
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
    fn only_what_is_as_it_is_in_its_file_is_given_back() {
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
