//! How much memory a process and its descendants hold.

/// Resident bytes of a process and all its descendants, as the kernel counts them now; `None` when it is gone or this
/// system does not tell. Pages that processes share are counted for each of them.
#[cfg(target_os = "linux")]
pub fn resident(pid: u32) -> Option<usize> {
    let own = resident_alone(pid)?;
    let below = rustix::process::Pid::from_raw(pid.cast_signed()).map(|pid| super::table::descendants(pid, &[]));
    let below = below.into_iter().flatten().filter_map(|pid| resident_alone(pid.as_raw_pid().cast_unsigned()));
    Some(below.fold(own, usize::saturating_add))
}

/// Resident bytes of a process and its descendants: this system does not tell.
#[cfg(not(target_os = "linux"))]
pub fn resident(_: u32) -> Option<usize> {
    None
}

#[cfg(target_os = "linux")]
fn resident_alone(pid: u32) -> Option<usize> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: usize = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::resident;

    #[test]
    fn a_process_holds_what_it_has_touched() {
        let before = resident(std::process::id()).unwrap();
        let held = vec![1_u8; 64 << 20];
        let after = resident(std::process::id()).unwrap();
        assert!(after > before + (48 << 20), "{before} {after} {}", held.len());
        assert_eq!(resident(u32::MAX), None);
    }
}
