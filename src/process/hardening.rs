//! Closes hostler's own memory and environment to other programs of its user: what tools are given as secrets is there.

/// Closes this process and the children that it forks, not those that it executes programs in. Call it before any
/// thread.
///
/// `/proc/PID/{environ,mem,maps,fd,…}`, tracing and core dumps are then closed to all but root. The environment is also
/// removed from the memory that `/proc/PID/environ` shows, which root's tools (`ps e`, crash reports) print.
#[cfg(target_os = "linux")]
pub fn harden() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    environment::conceal();
}

/// Other systems close a process by themselves (macOS), or not at all.
#[cfg(not(target_os = "linux"))]
pub fn harden() {}

#[cfg(target_os = "linux")]
mod environment {
    use std::ffi::{CStr, c_char};
    use std::ops::Range;

    use crate::process::mark;

    #[expect(unsafe_code, reason = "declares a variable of the C library; its use is argued below")]
    unsafe extern "C" {
        /// The C library's list of variables, which `getenv` searches.
        static mut environ: *mut *mut c_char;
    }

    /// Moves the variables out of the block that the kernel shows and overwrites it. Libraries still find them by
    /// `getenv`: certificates, proxies, the resolver's options. The mark of a run stays, for the sweep of the next start.
    pub fn conceal() {
        let Some(block) = std::fs::read_to_string("/proc/self/stat").ok().and_then(|stat| block(&stat)) else { return };
        // SAFETY: `harden` is called while there is a single thread, so no other code reads or changes the list. Its
        // entries are strings that end with NUL, and a null pointer ends the list. The copies are leaked: they live as
        // long as the list. Only strings within the block are overwritten, and to their ends: this memory is the
        // process's own stack, where nothing but the list refers to them.
        #[expect(unsafe_code, reason = "the C library's list of variables; argued above")]
        unsafe {
            if environ.is_null() {
                return;
            }
            let mut moved = Vec::new();
            let mut at = environ;
            while !(*at).is_null() {
                let entry = *at;
                moved.push(CStr::from_ptr(entry).to_owned().into_raw());
                if block.contains(&entry.addr()) && !is_mark(CStr::from_ptr(entry).to_bytes()) {
                    std::ptr::write_bytes(entry, 0, CStr::from_ptr(entry).count_bytes());
                }
                at = at.add(1);
            }
            moved.push(std::ptr::null_mut());
            environ = moved.leak().as_mut_ptr();
        }
    }

    fn is_mark(entry: &[u8]) -> bool {
        entry.strip_prefix(mark::VARIABLE.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
    }

    /// Where the kernel shows the environment: the fiftieth and fifty-first field of `/proc/PID/stat`.
    fn block(stat: &str) -> Option<Range<usize>> {
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(47);
        let block = fields.next()?.parse().ok()?..fields.next()?.parse().ok()?;
        // Zeros where the system does not tell.
        (block.start > 0).then_some(block)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_block_is_found_behind_a_name_of_any_form() {
            let fields: Vec<String> = (3..=52).map(|number| number.to_string()).collect();
            let stat = format!("17 (a) b) {}", fields.join(" "));
            assert_eq!(block(&stat), Some(50..51));
            assert_eq!(block("17 (a) S 4"), None);
            assert_eq!(block(&stat.replace(" 50 51 ", " 0 0 ")), None);
        }

        #[test]
        fn only_the_mark_itself_stays() {
            assert!(is_mark(b"HOSTLER_RUN=b:1:2:3:4"));
            assert!(!is_mark(b"HOSTLER_RUNNER=x") && !is_mark(b"A=HOSTLER_RUN=x") && !is_mark(b"HOSTLER_RUN"));
        }
    }
}
