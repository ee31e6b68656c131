//! Follows changes of tool files: a thread that the system notifies of changes in their folders, or that looks at the files
//! itself where the system cannot.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use std::{fs, thread};

use notify::event::{AccessKind, AccessMode};
use notify::{ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use super::catalogue::Catalogue;
use super::live::{Registry, is_ignored};
use crate::telemetry::carry;

/// Saving a file is several changes, a checkout hundreds: files are read when there was no change for this long.
const QUIET: Duration = Duration::from_millis(50);
/// Files are read at the latest this long after the first change.
const LATEST: Duration = Duration::from_millis(500);
/// How often files are looked at without notifications.
const POLL: Duration = Duration::from_millis(500);

/// When files are looked at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// When one changes.
    AtChanges,
    /// Soon, also without a change.
    Soon,
    /// When this time is over, also without a change.
    Within(Duration),
}

/// What else happens on the watching thread.
pub trait Follower: Send {
    /// Files to watch beside the tools.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Called before the tool files are looked at; says when next.
    fn look(&self) -> Look {
        Look::AtChanges
    }

    /// Called with each catalogue in force.
    fn follow(&self, catalogue: &Catalogue);
}

impl<F: Fn(&Catalogue) + Send> Follower for F {
    fn follow(&self, catalogue: &Catalogue) {
        self(catalogue);
    }
}

/// Keeps a registry up to date until it is dropped.
#[derive(Debug)]
pub struct Watching {
    bell: SyncSender<()>,
    over: Arc<AtomicBool>,
    /// Ends with it.
    along: Option<AbortHandle>,
}

/// Starts a watcher that notifies of relevant changes.
pub(super) type StartWatcher = fn(SyncSender<()>, Arc<Mutex<Folders>>) -> notify::Result<RecommendedWatcher>;

impl Watching {
    /// A task that ends with it.
    #[must_use]
    pub fn along(mut self, task: AbortHandle) -> Self {
        self.along = Some(task);
        self
    }

    /// Starts the thread.
    pub fn start(registry: &Arc<Registry>, follower: Box<dyn Follower>) -> Self {
        Self::by(begin, registry, follower)
    }

    pub(super) fn by(begin: StartWatcher, registry: &Arc<Registry>, follower: Box<dyn Follower>) -> Self {
        // One pending notification is enough.
        let (bell, rings) = sync_channel(1);
        let over = Arc::<AtomicBool>::default();
        let watched = Arc::<Mutex<Folders>>::default();
        let registry = Arc::downgrade(registry);
        let (ringing, is_over) = (bell.clone(), Arc::clone(&over));
        let work = move || {
            let mut thread = WatchThread {
                registry,
                follower,
                rings,
                over: is_over,
                watched: Arc::clone(&watched),
                watcher: None,
                polls: false,
                is_logged: false,
            };
            match begin(ringing, watched) {
                Ok(started) => thread.watcher = Some(started),
                Err(error) => thread.poll_instead(&error.to_string(), true),
            }
            thread.run();
        };
        if let Err(error) = thread::Builder::new().name("watch".to_owned()).spawn(carry(work)) {
            tracing::warn!(%error, "tool files are not watched; changes are noticed at the next call or list");
        }
        Self { bell, over, along: None }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        let _ = self.bell.try_send(());
        self.along.iter().for_each(AbortHandle::abort);
    }
}

/// Starts the watcher of the system. It notifies on a thread of its own.
pub(super) fn begin(ring: SyncSender<()>, watched: Arc<Mutex<Folders>>) -> notify::Result<RecommendedWatcher> {
    let mut started = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // After an error, a look at the files decides.
        let is_relevant = event.map_or(true, |event| {
            event.need_rescan()
                || is_change(event.kind) && {
                    let watched = watched.lock();
                    event.paths.iter().any(|path| matters(&watched, path))
                }
        });
        if is_relevant {
            let _ = ring.try_send(());
        }
    })?;
    // It does not tell that its thread could not be started, but does not answer then.
    if started.configure(notify::Config::default()).is_err() {
        // Without its thread, everything else panics, also its end.
        std::mem::forget(started);
        return Err(notify::Error::generic("no thread could be started"));
    }
    Ok(started)
}

/// Reading a file is not a change: hostler itself reads them.
pub(super) fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

struct WatchThread {
    /// Upgraded only while there is something to do.
    registry: Weak<Registry>,
    follower: Box<dyn Follower>,
    rings: Receiver<()>,
    over: Arc<AtomicBool>,
    watched: Arc<Mutex<Folders>>,
    watcher: Option<RecommendedWatcher>,
    polls: bool,
    is_logged: bool,
}

impl WatchThread {
    fn run(mut self) {
        let mut last: Option<Arc<Catalogue>> = None;
        while let Some(registry) = self.registry.upgrade() {
            // What changes from here on is notified.
            self.watch(&registry);
            let look = self.follower.look();
            self.keep_up(&registry);
            // A call may have read it before this thread.
            let now = registry.catalogue();
            if last.as_ref().is_none_or(|last| !Arc::ptr_eq(last, &now)) {
                self.follower.follow(&now);
                last = Some(now);
            }
            drop(registry);
            let waited = match look {
                Look::Within(wait) if !self.polls || wait < POLL => self.rings.recv_timeout(wait),
                Look::AtChanges if !self.polls => self.rings.recv().map_err(Into::into),
                _ => self.rings.recv_timeout(POLL),
            };
            match waited {
                Ok(()) => self.wait_for_quiet(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.over.load(Ordering::Acquire) {
                return;
            }
        }
    }

    /// Reads what changed, and again while there are new folders, which may hold new files. Folders are watched before they
    /// are read, so that a change in between notifies again.
    fn keep_up(&mut self, registry: &Registry) {
        self.watch(registry);
        registry.refresh_if_changed();
        while self.watch(registry) {
            self.follower.look();
            registry.refresh_if_changed();
        }
    }

    fn wait_for_quiet(&self) {
        let latest = Instant::now() + LATEST;
        while !self.over.load(Ordering::Acquire) {
            let left = latest.saturating_duration_since(Instant::now()).min(QUIET);
            if left.is_zero() || self.rings.recv_timeout(left).is_err() {
                return;
            }
        }
    }

    /// Watches every relevant folder, and returns whether one of them is new. Known folders are watched again: a folder that
    /// was removed and created again has the same name.
    fn watch(&mut self, registry: &Registry) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let mut wanted = folders(&registry.config().tools.value, &registry.catalogue());
        for file in self.follower.files() {
            lead_to(&file, &mut wanted);
        }
        let before = std::mem::replace(&mut *self.watched.lock(), wanted.clone());
        for gone in before.keys().filter(|folder| !wanted.contains_key(*folder)) {
            let _ = watcher.unwatch(gone);
        }
        let mut cannot = None;
        for (folder, what) in &wanted {
            let reason = match watcher.watch(folder, RecursiveMode::NonRecursive) {
                Err(error) if !is_gone(&error) => error.to_string(),
                _ if is_shared(folder) => format!("{} is on a network file system", folder.display()),
                _ => continue,
            };
            // A folder above a tools folder matters less, and hostler may be started anywhere.
            let is_important = *what == Matters::All;
            if is_important || cannot.is_none() {
                cannot = Some((reason, is_important));
            }
        }
        if let Some((reason, is_important)) = cannot {
            self.poll_instead(&reason, is_important);
        }
        let names = |folders: &Folders| folders.keys().cloned().collect::<HashSet<PathBuf>>();
        !names(&wanted).is_subset(&names(&before))
    }

    fn poll_instead(&mut self, reason: &str, is_important: bool) {
        let every = POLL.as_millis();
        if is_important && !std::mem::replace(&mut self.is_logged, true) {
            tracing::warn!(reason, "tool files cannot be watched; they are checked every {every} ms");
        } else if !self.polls {
            tracing::debug!(reason, "a folder above a tools folder is not watched, but checked every {every} ms");
        }
        self.polls = true;
    }
}

/// The folder was removed in the meantime, which was notified.
fn is_gone(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::PathNotFound => true,
        ErrorKind::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

/// Canonical folders, and what is relevant in each.
pub(super) type Folders = HashMap<PathBuf, Matters>;

/// What is relevant in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Matters {
    /// Everything: it holds tool files or helpers.
    All,
    /// These names: the way to a tools folder that may be created, removed or replaced.
    Names(HashSet<OsString>),
}

impl Matters {
    fn name(&mut self, name: OsString) {
        if let Self::Names(names) = self {
            names.insert(name);
        }
    }

    fn includes(&self, name: &Path) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => name.file_name().is_some_and(|name| names.contains(name)),
        }
    }
}

/// Whether an event at a path may change the catalogue.
pub(super) fn matters(folders: &Folders, path: &Path) -> bool {
    let within = path.parent().and_then(|folder| folders.get(folder));
    folders.contains_key(path) || within.is_some_and(|what| what.includes(path))
}

/// The folders of a catalogue: the tools folders and their subfolders, those of helpers, and those of link targets.
pub(super) fn folders(tools: &[PathBuf], catalogue: &Catalogue) -> Folders {
    let mut found = Folders::new();
    for folder in tools {
        lead_to(folder, &mut found);
        let inner = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        for folder in inner.filter(|path| path.is_dir() && !is_ignored(path)).chain([folder.clone()]) {
            watch_all(&folder, &mut found);
        }
    }
    let files = catalogue.files.iter().flat_map(|entry| std::iter::once(&entry.file.path).chain(&entry.file.helpers));
    for file in files {
        let target = fs::canonicalize(file).ok();
        for folder in [Some(file.as_path()), target.as_deref()].into_iter().flatten().filter_map(Path::parent) {
            watch_all(folder, &mut found);
        }
    }
    found
}

fn watch_all(folder: &Path, found: &mut Folders) {
    if let Ok(folder) = fs::canonicalize(folder) {
        found.insert(folder, Matters::All);
    }
}

/// The system follows so many links, too.
const MOST_LINKS: usize = 40;

/// The folders that hold a link on the way to a file or folder, and the one that holds it itself, or the nearest that exists;
/// with the name in each.
fn lead_to(path: &Path, found: &mut Folders) {
    let Ok(mut way) = std::path::absolute(path) else { return };
    let mut here = PathBuf::new();
    let mut links = 0;
    loop {
        let mut rest = way.components();
        match rest.next() {
            None => return,
            Some(Component::CurDir) => {}
            Some(Component::ParentDir) => drop(here.pop()),
            Some(Component::Normal(name)) => {
                let next = here.join(name);
                let target = fs::read_link(&next).ok().filter(|_| links < MOST_LINKS);
                let is_last =
                    target.is_none() && (rest.as_path().as_os_str().is_empty() || fs::symlink_metadata(&next).is_err());
                if is_last || target.is_some() {
                    let matters = found.entry(here.clone()).or_insert_with(|| Matters::Names(HashSet::new()));
                    matters.name(name.to_owned());
                }
                if let Some(target) = target {
                    links += 1;
                    way = target.join(rest);
                    continue;
                }
                if is_last {
                    return;
                }
                here = next;
            }
            Some(root) => here.push(root),
        }
        way = rest.as_path().to_owned();
    }
}

/// Whether other machines may change files there without a notification on this one.
pub(super) fn is_shared(folder: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        // NFS, SMB (three versions), FUSE, 9p, VirtualBox, Ceph, AFS, Coda: their numbers in statfs(2).
        const SHARED: [u32; 10] = [
            0x6969,
            0x517b,
            0xff53_4d42,
            0xfe53_4d42,
            0x6573_5546,
            0x0102_1997,
            0x786f_4256,
            0x00c3_6400,
            0x5346_414f,
            0x7375_7245,
        ];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "they are numbers of 32 bits")]
        return rustix::fs::statfs(folder).is_ok_and(|about| SHARED.contains(&(about.f_type as u32)));
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = folder;
        false
    }
}
