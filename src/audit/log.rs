//! Adds to the log. All processes of a person take turns, by a lock that ends with its holder.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::head::Head;
use super::key::{self, Key};
use super::record::{Kind, Record, hash_of, signed};
use super::segments::{self, Line, Snapshot};
use crate::config::audit::Keep;
use crate::config::turns::{hold, open_lock, release};
use crate::process::edge;
use crate::telemetry::unix_ms;

/// Why a record cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Another process writes just now.
    #[error("another process is writing")]
    Busy,
    /// The system does not let it.
    #[error("cannot write {}: {source}", path.display())]
    System {
        /// The folder of the log.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// The log of a person.
#[derive(Debug)]
pub struct AuditLog {
    folder: PathBuf,
    /// Locked to write a record, or for a checkpoint.
    files: Mutex<Files>,
}

/// What is open.
#[derive(Debug, Default)]
struct Files {
    /// What keeps out other processes.
    lock: Option<File>,
    head: Option<File>,
    /// The last file, and its first record.
    segment: Option<(u64, File)>,
}

/// How long other processes are waited for to look at the log, and the pause between two tries.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);
/// How soon a checkpoint follows the one before. The one after a longer quiet is made at once.
const BETWEEN: Duration = Duration::from_secs(1);
/// The bounds of the length of a file, which else is a part of what is kept.
const SEGMENT: (u64, u64) = (64 << 10, 16 << 20);
/// Into how many files what is kept is parted, at least.
const PARTS: u64 = 12;

impl AuditLog {
    /// The one in a folder, which is made when something is written.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder, files: Mutex::default() }
    }

    /// Adds a record. When a checkpoint is due.
    pub fn add(&self, kind: &Kind, keep: Keep) -> Result<Duration, WriteError> {
        self.with_lock(|folder, files| {
            let mut end = End::find(folder, files)?;
            end.roll_if_long(keep)?;
            end.append(kind)?;
            let since = Duration::from_millis(unix_ms().abs_diff(end.head.signed_ms));
            Ok(BETWEEN.saturating_sub(since))
        })
    }

    /// Signs all that is there, unless it is signed, and removes what is not to be kept any longer. Writes to the disk, which can take
    /// milliseconds. Blocks.
    pub fn sign(&self, keep: Keep) -> Result<(), WriteError> {
        self.held(|folder, files| {
            let mut end = End::find(folder, files)?;
            if end.head.next > end.head.signed {
                end.prune(keep)?;
                end.checkpoint()?;
            }
            Ok(())
        })
    }

    /// Does something while no other process writes, after waiting for those that do. Blocks.
    fn held<T>(&self, work: impl FnOnce(&Path, &mut Files) -> io::Result<T>) -> Result<T, WriteError> {
        let late = Instant::now() + PATIENCE;
        let mut files = self.files.lock();
        let mut locked = files.lock(&self.folder);
        while locked.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) && Instant::now() < late {
            std::thread::sleep(PAUSE);
            locked = files.lock(&self.folder);
        }
        let done = locked.and_then(|()| work(&self.folder, &mut files));
        files.unlock();
        done.map_err(|error| self.failed(error))
    }

    /// The files as they are between two records. Blocks.
    pub(super) fn snapshot(&self) -> Result<Snapshot, WriteError> {
        self.held(|folder, _| Snapshot::of(folder))
    }

    fn failed(&self, error: io::Error) -> WriteError {
        match error.kind() {
            io::ErrorKind::WouldBlock => WriteError::Busy,
            _ => WriteError::System { path: self.folder.clone(), source: error },
        }
    }

    fn with_lock<T>(&self, work: impl FnOnce(&Path, &mut Files) -> io::Result<T>) -> Result<T, WriteError> {
        // A checkpoint takes milliseconds.
        let mut files = self.files.try_lock().ok_or(WriteError::Busy)?;
        let done = files.lock(&self.folder).and_then(|()| work(&self.folder, &mut files));
        files.unlock();
        done.map_err(|error| self.failed(error))
    }
}

impl Files {
    fn lock(&mut self, folder: &Path) -> io::Result<()> {
        let is_there = |file: &File| file.metadata().is_ok_and(|about| about.nlink() > 0);
        // The folder may have been moved, and another one be in its place.
        let named = std::fs::symlink_metadata(folder.join("lock")).ok().map(|about| (about.dev(), about.ino()));
        if self.lock.take_if(|lock| lock.metadata().ok().map(|about| (about.dev(), about.ino())) != named).is_some() {
            (self.head, self.segment) = (None, None);
        }
        if self.lock.is_none() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            self.lock = Some(open_lock(&folder.join("lock"))?);
        }
        let lock = self.lock.as_ref().ok_or(io::ErrorKind::NotFound)?;
        hold(lock)?;
        // They may have been removed since.
        self.head.take_if(|head| !is_there(head));
        self.segment.take_if(|(_, file)| !is_there(file));
        Ok(())
    }

    fn unlock(&self) {
        if let Some(lock) = &self.lock {
            release(lock);
        }
    }
}

/// The end of the log, while this process alone may write.
struct End<'a> {
    folder: &'a Path,
    files: &'a mut Files,
    head: Head,
}

impl<'a> End<'a> {
    /// Finds it, and mends what a process left that died meanwhile.
    fn find(folder: &'a Path, files: &'a mut Files) -> io::Result<Self> {
        let is_first = files.head.is_none();
        if is_first {
            files.head = Some(Head::open(folder)?);
        }
        let known = files.head.as_ref().map(Head::read).transpose()?.flatten();
        let head = known.clone().unwrap_or_else(Head::new);
        let mut end = Self { folder, files, head };
        if known.is_none() {
            end.begin()?;
        } else {
            end.catch_up()?;
            // After a loss of power, the head may be older than the files.
            while is_first && segments::file(folder, end.head.next).exists() && end.head.next != end.head.segment {
                (end.head.segment, end.head.length) = (end.head.next, 0);
                end.catch_up()?;
            }
        }
        Ok(end)
    }

    /// Begins the log, or goes on after files whose end is not known.
    fn begin(&mut self) -> io::Result<()> {
        let Some(last) = segments::all(self.folder)?.pop() else {
            self.note()?;
            return self.take_new_key(None);
        };
        self.head.segment = last;
        (self.head.next, self.head.length) = (last, 0);
        let found = self.read_on()?;
        let why = format!(
            "the file `head` is missing or damaged{}",
            found.map(|what| format!(", {what}")).unwrap_or_default()
        );
        self.resume(why)?;
        self.take_new_key(Some("the file `head`, which names the key, is missing or damaged".to_owned()))
    }

    /// Takes in what was written without being noted in the head.
    fn catch_up(&mut self) -> io::Result<()> {
        let length = self.segment()?.metadata()?.len();
        if length == self.head.length {
            // Who began the log died before its first record.
            return if self.head.next == 0 { self.take_new_key(None) } else { Ok(()) };
        }
        if length < self.head.length {
            let (file, is, was) = (segments::file(self.folder, self.head.segment), length, self.head.length);
            return self.resume(format!("{} has {is} bytes, and had {was}", file.display()));
        }
        match self.read_on()? {
            None => self.note(),
            Some(what) => self.resume(what),
        }
    }

    /// Reads the last file behind what is known of it. What is there instead of records, if something is.
    fn read_on(&mut self) -> io::Result<Option<String>> {
        let path = segments::file(self.folder, self.head.segment);
        let mut at = 0;
        for line in segments::lines(segments::read(&path)?) {
            let (line, is_known) = (line?, at < self.head.length);
            at += line.length();
            if is_known {
                continue;
            }
            match line {
                Line::Record(line, record) => {
                    // The first one of a file whose head is unknown continues one that is not looked at.
                    let is_first = self.head.length == 0 && record.n == self.head.segment;
                    if record.n != self.head.next || !(is_first || record.prev == self.head.hash) {
                        return Ok(Some(format!("{} has records that do not follow the last one", path.display())));
                    }
                    self.follow(&line, &record, at);
                }
                // A process died while it wrote.
                Line::Torn(torn) if at - torn == self.head.length => {
                    let length = self.head.length;
                    self.segment()?.set_len(length)?;
                }
                Line::Other(_) | Line::Torn(_) => {
                    return Ok(Some(format!("{} has lines that are not records", path.display())));
                }
            }
        }
        Ok(None)
    }

    /// Goes on behind a record.
    fn follow(&mut self, line: &[u8], record: &Record, length: u64) {
        let head = &mut self.head;
        if head.length == 0 {
            head.began_ms = record.at_ms;
        }
        (head.next, head.hash, head.length) = (record.n.saturating_add(1), hash_of(line), length);
        match &record.kind {
            Kind::Checkpoint { next, .. } => {
                (head.signed, head.signed_ms, head.key) = (record.n.saturating_add(1), record.at_ms, next.clone());
            }
            Kind::Begin { key, .. } => head.key.clone_from(key),
            _ => {}
        }
    }

    /// Leaves the last file as it is and goes on in a new one.
    fn resume(&mut self, why: String) -> io::Result<()> {
        tracing::warn!("the audit log is not as it was written: {why}; `hostler audit verify` shows where");
        self.new_segment()?;
        self.append(&Kind::Resumed { why })
    }

    fn new_segment(&mut self) -> io::Result<()> {
        // A file with that name would be taken for the next one.
        let taken = segments::all(self.folder)?.pop().filter(|last| *last >= self.head.next);
        self.head.next = taken.map_or(self.head.next, |last| last + 1);
        (self.head.segment, self.head.length, self.head.began_ms) = (self.head.next, 0, unix_ms());
        self.files.segment = None;
        // Before it has a record: the next writer looks there, also after a loss of power.
        self.note()?;
        self.files.head.as_ref().map_or(Ok(()), File::sync_data)
    }

    /// Brings the last file and the head to the disk.
    fn sync(&mut self) -> io::Result<()> {
        self.segment()?.sync_data()?;
        self.files.head.as_ref().map_or(Ok(()), File::sync_data)
    }

    /// Makes a new key, which nothing signs but what it signs itself later.
    fn take_new_key(&mut self, why: Option<String>) -> io::Result<()> {
        let key = Key::random()?;
        key.write(&key::current(self.folder))?;
        self.append(&Kind::Begin { key: key.public(), why })
    }

    /// The last file, open.
    fn segment(&mut self) -> io::Result<&File> {
        let wanted = self.head.segment;
        if self.files.segment.as_ref().is_none_or(|(first, _)| *first != wanted) {
            self.files.segment = Some((wanted, segments::open(self.folder, wanted)?));
        }
        self.files.segment.as_ref().map(|(_, file)| file).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn append(&mut self, kind: &Kind) -> io::Result<()> {
        self.append_at(unix_ms(), kind)
    }

    fn append_at(&mut self, at_ms: u64, kind: &Kind) -> io::Result<()> {
        let record = Record { n: self.head.next, at_ms, prev: self.head.hash.clone(), kind: kind.clone() };
        let mut line = serde_json::to_vec(&record)?;
        if line.len() as u64 >= segments::LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the record is too long"));
        }
        let length = self.head.length + line.len() as u64 + 1;
        line.push(b'\n');
        self.segment()?.write_all(&line)?;
        edge("audit.before-head");
        line.pop();
        self.follow(&line, &record, length);
        self.note()
    }

    fn note(&self) -> io::Result<()> {
        self.files.head.as_ref().map_or(Err(io::ErrorKind::NotFound.into()), |file| self.head.write(file))
    }

    fn roll_if_long(&mut self, keep: Keep) -> io::Result<()> {
        let most = (keep.size / PARTS).clamp(SEGMENT.0, SEGMENT.1);
        let age = Duration::from_millis(unix_ms().saturating_sub(self.head.began_ms));
        let is_old = age > keep.time / u32::try_from(PARTS).unwrap_or(u32::MAX);
        if self.head.length > 0 && (self.head.length >= most || is_old) {
            self.new_segment()?;
        }
        Ok(())
    }

    /// Removes the oldest files beyond what is kept, and writes down that it does. The last file stays.
    fn prune(&mut self, keep: Keep) -> io::Result<()> {
        let all = segments::all(self.folder)?;
        let about = |first: &u64| segments::file(self.folder, *first).metadata();
        let found = all.iter().map(about).collect::<io::Result<Vec<_>>>()?;
        let mut size: u64 = found.iter().map(std::fs::Metadata::len).sum();
        let mut gone = 0;
        for one in found.iter().take(all.len().saturating_sub(1)) {
            let is_old = one.modified()?.elapsed().is_ok_and(|age| age > keep.time);
            if !is_old && size <= keep.size {
                break;
            }
            size -= one.len();
            gone += 1;
        }
        let Some(kept) = all.get(gone).filter(|_| gone > 0) else { return Ok(()) };
        let first = segments::lines(segments::read(&segments::file(self.folder, *kept))?).next().transpose()?;
        // A damaged file is not made the beginning.
        let Some(Line::Record(_, record)) = first else { return Ok(()) };
        self.append(&Kind::Pruned { first: *kept, before: record.prev })?;
        self.segment()?.sync_data()?;
        all[..gone].iter().try_for_each(|first| std::fs::remove_file(segments::file(self.folder, *first)))
    }

    /// Signs all so far, and replaces the key.
    fn checkpoint(&mut self) -> io::Result<()> {
        let (current, coming) = (key::current(self.folder), key::coming(self.folder));
        let is_named = |key: &Key| key.public() == self.head.key;
        // One that cannot be read is as good as missing.
        let read = |file: &Path| Key::read(file).ok().flatten().filter(is_named);
        let mut key = read(&current);
        // A process may have died between a checkpoint and the change of keys.
        if key.is_none()
            && let Some(named) = read(&coming)
        {
            std::fs::rename(&coming, &current)?;
            key = Some(named);
        }
        let Some(key) = key else {
            self.take_new_key(Some("the key that should sign is missing".to_owned()))?;
            return self.checkpoint();
        };
        let next = Key::random()?;
        next.write(&coming)?;
        let (at_ms, public) = (unix_ms(), next.public());
        let signature = key.sign(&signed(self.head.next, at_ms, &self.head.hash, &public));
        self.append_at(at_ms, &Kind::Checkpoint { next: public, signature })?;
        self.sync()?;
        edge("audit.before-key");
        std::fs::rename(coming, current)
    }
}
