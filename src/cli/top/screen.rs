//! The terminal, from when it is taken until it is given back as it was.

use std::io;
use std::thread;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::emulate_default_handler;
use tokio::sync::mpsc::Sender;

use super::link::Message;
use super::state::State;
use super::view;
use crate::cli::style;

/// Given back when it is dropped, and by a panic.
pub struct Screen {
    terminal: DefaultTerminal,
    has_colours: bool,
}

impl Screen {
    /// Takes the terminal, and sends what is typed there.
    pub fn take(messages: Sender<Message>) -> io::Result<Self> {
        let screen = Self { terminal: ratatui::try_init()?, has_colours: style::colours(&io::stdout()) };
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
        self.terminal.draw(|frame| view::draw(state, has_colours, frame)).map(drop)
    }

    /// Gives the terminal to the shell until the shell gives it back.
    pub fn suspend(&mut self) -> io::Result<()> {
        self.terminal.show_cursor()?;
        ratatui::try_restore()?;
        let stopped = emulate_default_handler(SIGTSTP);
        // Its screen is empty. To clear it would ask the terminal for its cursor, and the thread that reads keys gets the answer.
        self.terminal = ratatui::try_init()?;
        stopped
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = ratatui::try_restore();
    }
}
