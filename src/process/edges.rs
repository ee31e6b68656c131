//! Where a process can be made to die, to stop or to do wrong, to test what it leaves and that a test sees it: the edges between the steps of
//! the journal, and its promises. Only in builds for development; elsewhere nothing is left of them.

#[cfg(debug_assertions)]
static ARMED: std::sync::OnceLock<[Option<String>; 3]> = std::sync::OnceLock::new();

/// Arms an edge to die at, a promise to break and an edge to stop at, for the life of the process.
pub fn arm(die_at: Option<&str>, sabotage: Option<&str>, stop_at: Option<&str>) {
    #[cfg(debug_assertions)]
    let _ = ARMED.set([die_at, sabotage, stop_at].map(|name| name.map(str::to_owned)));
    #[cfg(not(debug_assertions))]
    let _ = (die_at, sabotage, stop_at);
}

/// The process dies here, as by a kill that nothing can handle, or stops until it is continued, if this edge is armed.
#[inline]
pub fn edge(name: &str) {
    #[cfg(debug_assertions)]
    for (which, signal) in [(0, rustix::process::Signal::KILL), (2, rustix::process::Signal::STOP)] {
        if armed(which) == Some(name) {
            let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
        }
    }
    #[cfg(not(debug_assertions))]
    let _ = name;
}

/// Whether this promise is broken on purpose.
#[inline]
pub fn is_broken(name: &str) -> bool {
    #[cfg(debug_assertions)]
    return armed(1) == Some(name);
    #[cfg(not(debug_assertions))]
    {
        let _ = name;
        false
    }
}

#[cfg(debug_assertions)]
fn armed(which: usize) -> Option<&'static str> {
    ARMED.get()?[which].as_deref()
}
