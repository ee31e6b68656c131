//! Where a process can be made to die or to do wrong, to test what it leaves and that a test sees it: the edges between the steps of
//! the journal, and its promises. Only in builds for development; elsewhere nothing is left of them.

#[cfg(debug_assertions)]
static ARMED: std::sync::OnceLock<[Option<String>; 2]> = std::sync::OnceLock::new();

/// Arms an edge to die at and a promise to break, for the life of the process.
pub fn arm(die_at: Option<&str>, sabotage: Option<&str>) {
    #[cfg(debug_assertions)]
    let _ = ARMED.set([die_at, sabotage].map(|name| name.map(str::to_owned)));
    #[cfg(not(debug_assertions))]
    let _ = (die_at, sabotage);
}

/// The process dies here, as by a kill that nothing can handle, if this edge is armed.
#[inline]
pub fn edge(name: &str) {
    #[cfg(debug_assertions)]
    if armed(0) == Some(name) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
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
