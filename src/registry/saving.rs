//! Keeping a catalogue for the next run, while this one already serves.

use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use crate::discovery::Unsaved;

/// Writing takes some milliseconds. Where it takes longer, the next run rather reads everything than this one waits.
const PATIENCE: Duration = Duration::from_millis(250);

/// Writes in the background. Dropping it waits a little, since a command may be over sooner than its catalogue is written.
#[derive(Debug, Default)]
pub(super) struct Saving {
    /// Closed when the last writing is over. Held only to replace it.
    last: Mutex<Option<Receiver<()>>>,
}

impl Saving {
    pub fn begin(&self, unsaved: Unsaved) {
        let (over, told) = channel::<()>();
        // One after the other: two at once would take each other for another hostler, and leave the writing to it.
        let mut last = self.last.lock();
        let earlier = last.take();
        let write = move || {
            if let Some(earlier) = earlier {
                let _ = earlier.recv();
            }
            unsaved.save();
            drop(over);
        };
        if thread::Builder::new().name("catalogue".to_owned()).spawn(write).is_ok() {
            *last = Some(told);
        }
    }

    /// Waits until what was begun is written, though not for long.
    pub fn wait(&self) {
        let last = self.last.lock().take();
        if let Some(told) = last {
            let _ = told.recv_timeout(PATIENCE);
        }
    }
}

impl Drop for Saving {
    fn drop(&mut self) {
        self.wait();
    }
}
