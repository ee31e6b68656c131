//! Keeping up with tool files while nobody calls: a thread that is told by the system when something happens in their
//! folders, and looks at the files itself where the system cannot tell.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;

use super::catalogue::Catalogue;
use super::folders::{Folders, Matters, folders, is_shared, matters};
use super::live::Registry;

/// An editor's save is several changes, a checkout hundreds: files are read once it has been quiet for this long.
const QUIET: Duration = Duration::from_millis(50);
/// And at the latest this long after the first change.
const LATEST: Duration = Duration::from_millis(500);
/// How often files are looked at where nobody tells of changes.
const LOOK: Duration = Duration::from_millis(500);

/// What is done with each catalogue once it is in force, on the thread that watches.
pub type OnCatalogue = Box<dyn Fn(&Catalogue) + Send>;

/// A registry that keeps up by itself, until this is dropped.
#[derive(Debug)]
pub struct Watching {
    bell: SyncSender<()>,
    over: Arc<AtomicBool>,
}

/// Begins to ring at whatever matters.
pub(super) type Begin = fn(SyncSender<()>, Arc<Mutex<Folders>>) -> notify::Result<RecommendedWatcher>;

impl Watching {
    /// Starts the thread.
    pub fn start(registry: &Arc<Registry>, then: OnCatalogue) -> Self {
        Self::by(begin, registry, then)
    }

    pub(super) fn by(begin: Begin, registry: &Arc<Registry>, then: OnCatalogue) -> Self {
        // One ring that nobody has heard yet says all there is to say.
        let (bell, rings) = sync_channel(1);
        let over = Arc::<AtomicBool>::default();
        let watched = Arc::<Mutex<Folders>>::default();
        let registry = Arc::downgrade(registry);
        let (ringing, is_over) = (bell.clone(), Arc::clone(&over));
        let work = move || {
            let mut keeper = Keeper {
                registry,
                then,
                rings,
                over: is_over,
                watched: Arc::clone(&watched),
                watcher: None,
                looks: false,
                is_told: false,
            };
            match begin(ringing, watched) {
                Ok(started) => keeper.watcher = Some(started),
                Err(error) => keeper.look_instead(&error.to_string(), true),
            }
            keeper.run();
        };
        if let Err(error) = thread::Builder::new().name("watch".to_owned()).spawn(work) {
            tracing::warn!(%error, "tool files are not watched; changes are seen at the next call or list");
        }
        Self { bell, over }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        let _ = self.bell.try_send(());
    }
}

/// The system's own way. The bell is rung on a thread of the library's.
pub(super) fn begin(ring: SyncSender<()>, watched: Arc<Mutex<Folders>>) -> notify::Result<RecommendedWatcher> {
    notify::recommended_watcher(move |event: notify::Result<Event>| {
        // What cannot be told, a look at the files will tell.
        let is_news = event.map_or(true, |event| {
            event.need_rescan()
                || is_change(event.kind) && {
                    let watched = watched.lock();
                    event.paths.iter().any(|path| matters(&watched, path))
                }
        });
        if is_news {
            let _ = ring.try_send(());
        }
    })
}

/// Reading a file changes nothing, and hostler itself reads them.
pub(super) fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

struct Keeper {
    /// Held only while there is something to do.
    registry: Weak<Registry>,
    then: OnCatalogue,
    rings: Receiver<()>,
    over: Arc<AtomicBool>,
    /// Held only to look or to replace it.
    watched: Arc<Mutex<Folders>>,
    watcher: Option<RecommendedWatcher>,
    looks: bool,
    is_told: bool,
}

impl Keeper {
    fn run(mut self) {
        let mut told: Option<Arc<Catalogue>> = None;
        while let Some(registry) = self.registry.upgrade() {
            self.keep_up(&registry);
            // Another one also where a call was sooner to read it.
            let now = registry.catalogue();
            if told.as_ref().is_none_or(|told| !Arc::ptr_eq(told, &now)) {
                (self.then)(&now);
                told = Some(now);
            }
            drop(registry);
            let waited = if self.looks { self.rings.recv_timeout(LOOK) } else { self.rings.recv().map_err(Into::into) };
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

    /// Files may come with folders, and folders with files, so it goes on until nothing is new.
    fn keep_up(&mut self, registry: &Registry) {
        loop {
            // Watched first, read then: what happens in between rings again.
            let is_new = self.watch(registry);
            if !registry.refresh_if_changed() && !is_new {
                return;
            }
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

    /// Watches every folder that matters now; says whether one of them is new. Also those it knows are asked for again: a
    /// folder that was removed and made anew has the same name.
    fn watch(&mut self, registry: &Registry) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let wanted = folders(registry.tool_folders(), &registry.catalogue());
        let before = std::mem::replace(&mut *self.watched.lock(), wanted.clone());
        for gone in before.keys().filter(|folder| !wanted.contains_key(*folder)) {
            let _ = watcher.unwatch(gone);
        }
        let mut cannot = None;
        for (folder, what) in &wanted {
            let reason = match watcher.watch(folder, RecursiveMode::NonRecursive) {
                Err(error) if !is_gone(&error) => error.to_string(),
                _ if is_shared(folder) => format!("{} is shared with others", folder.display()),
                _ => continue,
            };
            // Of a folder that only leads to one there is little to miss, and hostler may be started anywhere.
            let is_worth_telling = *what == Matters::All;
            if is_worth_telling || cannot.is_none() {
                cannot = Some((reason, is_worth_telling));
            }
        }
        if let Some((reason, is_worth_telling)) = cannot {
            self.look_instead(&reason, is_worth_telling);
        }
        let names = |folders: &Folders| folders.keys().cloned().collect::<HashSet<PathBuf>>();
        !names(&wanted).is_subset(&names(&before))
    }

    fn look_instead(&mut self, reason: &str, is_worth_telling: bool) {
        let every = LOOK.as_millis();
        if is_worth_telling && !std::mem::replace(&mut self.is_told, true) {
            tracing::warn!(reason, "tool files cannot be watched, so they are looked at every {every} ms");
        } else if !self.looks {
            tracing::debug!(reason, "what may come to hold tool files is not watched, but looked at every {every} ms");
        }
        self.looks = true;
    }
}

/// The folder went while it was about to be watched: whoever removed it has rung for that.
fn is_gone(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::PathNotFound => true,
        ErrorKind::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}
