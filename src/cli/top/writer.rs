//! The thread that writes to the terminal, and how the terminal is taken and given back. A terminal that is not read, for example that of
//! a stalled connection, holds up nothing else.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use rustix::io::Errno;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, Permit, Sender};

/// How long a terminal that is not read may hold up its return.
const PATIENCE: Duration = Duration::from_millis(300);

/// Whether the terminal shows its alternate screen. Static for the panic hook.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Held by the thread that writes: one that was given up may still wait for its terminal.
static TURN: Mutex<()> = Mutex::new(());

/// Writes frames to the terminal, which is taken as long as it lives.
pub struct Writer {
    /// Only one waits: those that are drawn meanwhile would be old.
    frames: Sender<Vec<u8>>,
    /// What the thread's end was.
    end: Receiver<io::Result<()>>,
}

impl Writer {
    /// Takes the terminal.
    pub fn start() -> io::Result<Self> {
        give_back_on_panic();
        let mut terminal = terminal()?;
        enable_raw_mode()?;
        let (frames, mut given) = mpsc::channel::<Vec<u8>>(1);
        let (ended, end) = sync_channel(1);
        let mut write = move || {
            let _turn = TURN.lock();
            IS_TAKEN.store(true, Ordering::Relaxed);
            execute!(terminal, EnterAlternateScreen)?;
            while let Some(frame) = given.blocking_recv() {
                terminal.write_all(&frame)?;
            }
            leave()
        };
        let thread = thread::Builder::new().name("draws".to_owned()).spawn(move || ended.send(write()));
        if let Err(error) = thread {
            disable_raw_mode()?;
            return Err(error);
        }
        Ok(Self { frames, end })
    }

    /// Room for a frame, unless one waits already.
    pub fn room(&self) -> io::Result<Option<Permit<'_, Vec<u8>>>> {
        match self.frames.try_reserve() {
            Ok(room) => Ok(Some(room)),
            Err(TrySendError::Full(())) => Ok(None),
            Err(TrySendError::Closed(())) => {
                Err(self.end.try_recv().ok().and_then(Result::err).unwrap_or_else(|| io::ErrorKind::BrokenPipe.into()))
            }
        }
    }

    /// Gives the terminal back. An error says that it does not show it yet, or does not exist any more.
    pub fn end(self) -> io::Result<()> {
        drop(self.frames);
        let left = self.end.recv_timeout(PATIENCE).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        left.and(disable_raw_mode())
    }
}

/// Whether an error says that the terminal does not exist any more, as after its window was closed.
pub fn is_gone(error: &io::Error) -> bool {
    [Errno::IO, Errno::NXIO].map(|gone| Some(gone.raw_os_error())).contains(&error.raw_os_error())
}

/// Standard output without its lock, which a thread that waits for the terminal would keep.
fn terminal() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// Shows what the terminal showed before.
fn leave() -> io::Result<()> {
    if IS_TAKEN.swap(false, Ordering::Relaxed) { execute!(terminal()?, Show, LeaveAlternateScreen) } else { Ok(()) }
}

/// Lets the message of a panic be read: without this, it is on the screen that is left.
fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // A closed terminal is no reason to end otherwise.
            let _ = leave().and(disable_raw_mode());
            usual(info);
        }));
    });
}
