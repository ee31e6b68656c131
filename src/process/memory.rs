//! How much memory a process and its descendants hold.

/// Resident bytes of a process and all its descendants, as the kernel counts them now; `None` when it is gone or this
/// system does not tell. Pages that processes share are counted for each of them.
#[cfg(target_os = "linux")]
pub fn resident(pid: u32) -> Option<usize> {
    let own = resident_alone(pid)?;
    let below = rustix::process::Pid::from_raw(pid.cast_signed()).map(|pid| super::table::descendants(pid, &[], None));
    let below = below.into_iter().flatten().filter_map(|(pid, _)| resident_alone(pid.as_raw_pid().cast_unsigned()));
    Some(below.fold(own, usize::saturating_add))
}

/// Seconds of processor time that a process has used; its children count once it has waited for them.
#[cfg(target_os = "linux")]
pub fn processor_time(pid: u32) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold blanks and parentheses.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: f64 = fields.get(11..15)?.iter().filter_map(|field| field.parse::<f64>().ok()).sum();
    Some(ticks / f64::from(u32::try_from(rustix::param::clock_ticks_per_second()).ok()?))
}

#[cfg(not(target_os = "linux"))]
pub fn processor_time(_: u32) -> Option<f64> {
    None
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
    use super::{processor_time, resident};

    #[test]
    fn a_process_that_works_uses_processor_time() {
        let before = processor_time(std::process::id()).unwrap();
        let began = std::time::Instant::now();
        while processor_time(std::process::id()).unwrap() < before + 0.02 {
            assert!(began.elapsed().as_secs() < 20, "no time passes");
        }
        assert_eq!(processor_time(u32::MAX), None);
    }

    #[test]
    fn a_process_holds_what_it_has_touched() {
        let before = resident(std::process::id()).unwrap();
        let held = vec![1_u8; 64 << 20];
        let after = resident(std::process::id()).unwrap();
        assert!(after > before + (48 << 20), "{before} {after} {}", held.len());
        assert_eq!(resident(u32::MAX), None);
    }
}
