//! Where a process can be made to die, to test what it leaves: the edges between the steps of the journal. Only in builds for
//! development; elsewhere nothing is left of them.

#[cfg(debug_assertions)]
static ARMED: std::sync::OnceLock<String> = std::sync::OnceLock::new();

/// Arms an edge, for the life of the process.
pub fn arm(name: Option<&str>) {
    #[cfg(debug_assertions)]
    if let Some(name) = name {
        let _ = ARMED.set(name.to_owned());
    }
    #[cfg(not(debug_assertions))]
    let _ = name;
}

/// The process dies here, as by a kill that nothing can handle, if this edge is armed.
#[inline]
pub fn edge(name: &str) {
    #[cfg(debug_assertions)]
    if ARMED.get().is_some_and(|armed| armed == name) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
    #[cfg(not(debug_assertions))]
    let _ = name;
}
