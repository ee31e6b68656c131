//! The terminal, from when it is taken until it is given back as it was.

use std::cell::RefCell;
use std::io::{self, Write};
use std::panic;
use std::rc::Rc;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use rustix::io::Errno;
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::emulate_default_handler;
use tokio::sync::mpsc::Sender;

use super::link::Message;
use super::state::State;
use super::view;
use crate::cli::style;

/// Whether the terminal is taken. Static for the panic hook.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Given back when it is dropped, and by a panic.
pub struct Screen {
    /// It draws into memory: its own writes complain about a closed terminal on standard error, which may be the same one, and panic.
    terminal: Terminal<CrosstermBackend<Drawn>>,
    drawn: Drawn,
    has_colours: bool,
}

/// What was drawn and is not written yet.
#[derive(Debug, Clone, Default)]
struct Drawn(Rc<RefCell<Vec<u8>>>);

impl Write for Drawn {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Screen {
    /// Takes the terminal, and sends what is typed there.
    pub fn take(messages: Sender<Message>) -> io::Result<Self> {
        let drawn = Drawn::default();
        let terminal = Terminal::new(CrosstermBackend::new(drawn.clone()))?;
        let screen = Self { terminal, drawn, has_colours: style::colours(&io::stdout()) };
        give_back_on_panic();
        enter()?;
        thread::Builder::new().name("keys".to_owned()).spawn(move || {
            loop {
                let message = match event::read() {
                    Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => Message::Key(key),
                    Ok(Event::Resize(..)) => Message::Resized,
                    Ok(_) => continue,
                    Err(_) => Message::Closed,
                };
                let is_over = matches!(message, Message::Closed);
                if messages.blocking_send(message).is_err() || is_over {
                    return;
                }
            }
        })?;
        Ok(screen)
    }

    pub fn draw(&mut self, state: &State) -> io::Result<()> {
        let has_colours = self.has_colours;
        self.terminal.draw(|frame| view::draw(state, has_colours, frame))?;
        write(&self.drawn.0.take())
    }

    /// Gives the terminal to the shell until the shell gives it back.
    pub fn suspend(&mut self) -> io::Result<()> {
        leave()?;
        emulate_default_handler(SIGTSTP)?;
        enter()?;
        // Its screen is empty. To clear it would ask the terminal for its cursor, and the thread that reads keys gets the answer.
        self.terminal = Terminal::new(CrosstermBackend::new(self.drawn.clone()))?;
        Ok(())
    }

    /// Gives the terminal back. An error says that it could not be.
    pub fn give_back(self) -> io::Result<()> {
        leave()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = leave();
    }
}

/// Whether an error says that the terminal does not exist any more, as after its window was closed.
pub fn is_gone(error: &io::Error) -> bool {
    [Errno::IO, Errno::NXIO].map(|gone| Some(gone.raw_os_error())).contains(&error.raw_os_error())
}

fn enter() -> io::Result<()> {
    TAKEN.store(true, Ordering::Relaxed);
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen)
}

/// Leaves the terminal as it was, once.
fn leave() -> io::Result<()> {
    if !TAKEN.swap(false, Ordering::Relaxed) {
        return Ok(());
    }
    let left = execute!(io::stdout(), Show, LeaveAlternateScreen);
    left.and(disable_raw_mode())
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// Lets a panic be read: without this, its message is on the screen that is left.
fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let _ = leave();
            usual(info);
        }));
    });
}
