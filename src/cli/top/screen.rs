//! The terminal, from when it is taken until it is given back as it was.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use std::thread;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::emulate_default_handler;
use tokio::sync::mpsc::Sender;

use super::link::Message;
use super::state::State;
use super::view;
use super::writer::Writer;
use crate::cli::style;

/// Given back when it is dropped, and by a panic.
pub struct Screen {
    /// It draws into memory: its own writes would wait for the terminal, and panic where standard error is a closed one.
    terminal: Terminal<CrosstermBackend<Drawn>>,
    drawn: Drawn,
    /// None after it was given back.
    writer: Option<Writer>,
    has_colours: bool,
    /// Whether the next frame has everything, not what has changed.
    is_whole: bool,
}

/// What was drawn and is not handed over yet.
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
        let has_colours = style::colours(&io::stdout());
        let screen = Self { terminal, drawn, writer: Some(Writer::start()?), has_colours, is_whole: false };
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

    /// Draws, unless the terminal has not shown yet what was drawn before. Whether it did.
    pub fn draw(&mut self, state: &mut State) -> io::Result<bool> {
        let Some(writer) = &self.writer else { return Ok(false) };
        let Some(room) = writer.room()? else { return Ok(false) };
        if std::mem::take(&mut self.is_whole) {
            // Not `clear`, which asks the terminal for its cursor: the thread that reads keys would get the answer.
            let size = self.terminal.size()?;
            self.terminal.resize(size.into())?;
        }
        let has_colours = self.has_colours;
        self.terminal.draw(|frame| view::draw(state, has_colours, frame))?;
        room.send(self.drawn.0.take());
        Ok(true)
    }

    /// Gives the terminal to the shell until the shell gives it back.
    pub fn suspend(&mut self) -> io::Result<()> {
        // One that is not read stops as it is.
        let _ = self.give_back();
        emulate_default_handler(SIGTSTP)?;
        self.writer = Some(Writer::start()?);
        self.repaint();
        Ok(())
    }

    /// Draws everything next time.
    pub fn repaint(&mut self) {
        self.is_whole = true;
    }

    pub fn give_back(&mut self) -> io::Result<()> {
        self.writer.take().map_or(Ok(()), Writer::end)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.give_back();
    }
}
