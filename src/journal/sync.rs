//! The thread that brings the spool to the disk for calls whose level is `synced`: one `fdatasync` for all that wait for it.

use std::sync::{Arc, Weak};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::spool::Spool;

/// What waits for the disk. The answer says why it failed.
type Waiting = oneshot::Sender<Result<(), String>>;

/// Brings the spool to the disk when asked.
pub struct Syncer {
    /// Locked to add or to take.
    waiting: Mutex<Vec<Waiting>>,
    asked: Condvar,
    spool: Weak<Spool>,
}

impl Syncer {
    /// Starts its thread.
    pub fn start(spool: &Arc<Spool>) -> std::io::Result<Arc<Self>> {
        let own = Arc::new(Self { waiting: Mutex::default(), asked: Condvar::new(), spool: Arc::downgrade(spool) });
        let thread = std::thread::Builder::new().name("journal-sync".to_owned());
        let it = Arc::downgrade(&own);
        thread.spawn(move || {
            while let Some(syncer) = it.upgrade() {
                syncer.turn();
            }
        })?;
        Ok(own)
    }

    /// Everything that was written before is on the disk when this ends.
    pub async fn synced(&self) -> Result<(), String> {
        let (sender, done) = oneshot::channel();
        {
            let mut waiting = self.waiting.lock();
            waiting.push(sender);
            self.asked.notify_one();
        }
        done.await.unwrap_or_else(|_| Err("the journal ended".to_owned()))
    }

    fn turn(&self) {
        let group = {
            let mut waiting = self.waiting.lock();
            if waiting.is_empty() {
                // Looks up now and then, so that the thread ends with what it serves.
                self.asked.wait_for(&mut waiting, std::time::Duration::from_secs(1));
            }
            std::mem::take(&mut *waiting)
        };
        if group.is_empty() {
            return;
        }
        let Some(spool) = self.spool.upgrade() else { return };
        let done = spool.sync().map_err(|error| format!("the journal cannot be brought to the disk: {error}"));
        for one in group {
            let _ = one.send(done.clone());
        }
    }
}
