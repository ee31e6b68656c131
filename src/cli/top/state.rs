//! What is shown and what keys do: a machine without a terminal, a clock or a connection.

use std::collections::VecDeque;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::history::History;
use super::link::{LISTED, Message, Wish};
use super::rows::{Row, calls, workers};
use crate::call::{CallInfo, ToolMetrics};
use crate::cli::calls::as_text;
use crate::cli::events::{Said, said, short};
use crate::control::Status;

/// The lines of events that are kept.
const KEPT: usize = 500;
/// The lines that one event may add: a tool that writes much would push out everything else.
const OF_ONE: usize = 50;
/// The characters of a line.
const LONGEST: usize = 1000;
/// The seconds for which a remark stays.
const REMARK: u8 = 5;
/// The rows that a page key moves.
const PAGE: usize = 10;

/// A list on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pane {
    Workers,
    #[default]
    Calls,
    Events,
}

/// What follows from a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    Go,
    Ask(Wish),
    /// Draw everything, not what has changed: a terminal may lose what it showed, also if it has its size back.
    Repaint,
    Suspend,
    Leave,
}

/// A list with the row that keys are about.
#[derive(Debug, Default)]
pub struct List {
    pub rows: Vec<Row>,
    pub at: usize,
}

impl List {
    /// Other rows. The chosen one stays, wherever it is now; the first one stays the first.
    fn set(&mut self, rows: Vec<Row>) {
        let chosen = self.rows.get(self.at).filter(|_| self.at > 0).map(|row| &row.key);
        let now = chosen.and_then(|key| rows.iter().position(|row| row.key == *key));
        self.at = now.unwrap_or(self.at).min(rows.len().saturating_sub(1));
        self.rows = rows;
    }

    pub fn chosen(&self) -> Option<&Row> {
        self.rows.get(self.at)
    }
}

#[derive(Default)]
pub struct State {
    pub status: Option<Status>,
    /// Why nothing new comes.
    pub gone: Option<String>,
    pub history: History,
    pub pane: Pane,
    pub workers: List,
    pub calls: List,
    infos: Vec<CallInfo>,
    pub events: VecDeque<Said>,
    /// How many of the newest events are below what is seen.
    pub back: usize,
    /// Everything about the chosen row, and how many lines of it are above what is seen.
    pub details: Option<(String, u16)>,
    /// What is done if the answer is yes, and the question.
    pub question: Option<(Wish, String)>,
    remark: Option<(String, u8)>,
}

impl State {
    pub fn take(&mut self, message: Message) -> Step {
        match message {
            Message::Key(key) => return self.key(key),
            Message::Status(status) => self.status(*status),
            Message::Calls(infos) => {
                self.calls.set(calls(&infos));
                self.infos = infos;
            }
            Message::Event(event) => self.event(&event),
            Message::LeftOut(count) => self.event(&serde_json::json!({"event": "lost", "count": count})),
            Message::Gone(why) => self.gone = Some(why),
            Message::Done(what) => self.say(&what),
            Message::Resized => return Step::Repaint,
            Message::Closed => return Step::Leave,
        }
        Step::Go
    }

    /// A second is over.
    pub fn second(&mut self) {
        self.history.second();
        if let Some((_, left)) = &mut self.remark {
            *left = left.saturating_sub(1);
        }
        self.remark.take_if(|(_, left)| *left == 0);
    }

    /// Shows a remark for a while.
    pub fn say(&mut self, what: &str) {
        self.remark = Some((what.to_owned(), REMARK));
    }

    pub fn remark(&self) -> Option<&str> {
        self.remark.as_ref().map(|(what, _)| what.as_str())
    }

    /// The title of the calls: how many are listed, and of how many if the list is full.
    pub fn title_of_calls(&self) -> String {
        let listed = self.calls.rows.len();
        let tools = self.status.iter().flat_map(|status| &status.tools);
        let all: u64 = tools.map(ToolMetrics::calls).sum();
        if listed < LISTED || all <= listed as u64 {
            format!("calls {listed}")
        } else {
            format!("calls {listed} of {all}")
        }
    }

    fn status(&mut self, status: Status) {
        let sum = |of: fn(&ToolMetrics) -> u64| status.tools.iter().map(of).sum();
        self.history.counted(sum(|tool| tool.executions), sum(|tool| tool.failed));
        self.workers.set(workers(&status));
        self.status = Some(status);
        self.gone = None;
    }

    fn event(&mut self, event: &serde_json::Value) {
        if let Some(took) = event["latency_ms"].as_f64() {
            self.history.ended(took);
        }
        let before = self.events.len();
        for mut line in said(event).take(OF_ONE) {
            if let Some((end, _)) = line.what.char_indices().nth(LONGEST) {
                line.what.truncate(end);
            }
            self.events.push_back(line);
        }
        if self.back > 0 {
            self.back += self.events.len() - before;
        }
        let excess = self.events.len().saturating_sub(KEPT);
        self.events.drain(..excess);
        self.back = self.back.min(self.events.len().saturating_sub(1));
    }

    fn key(&mut self, key: KeyEvent) -> Step {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Step::Leave,
                KeyCode::Char('z') => Step::Suspend,
                _ => Step::Go,
            };
        }
        if let Some((wish, _)) = self.question.take() {
            let is_yes = matches!(key.code, KeyCode::Char('y' | 'Y'));
            return if is_yes { Step::Ask(wish) } else { Step::Go };
        }
        if let Some((_, above)) = &mut self.details {
            match key.code {
                KeyCode::Up | KeyCode::Char('k') => *above = above.saturating_sub(1),
                KeyCode::Down | KeyCode::Char('j') => *above = above.saturating_add(1),
                _ => self.details = None,
            }
            return Step::Go;
        }
        match key.code {
            KeyCode::Char('q') => return Step::Leave,
            KeyCode::Tab => self.pane = self.pane.next(),
            KeyCode::BackTab => self.pane = self.pane.next().next(),
            KeyCode::Enter => self.details = self.about_chosen().map(|text| (text, 0)),
            KeyCode::Char(letter @ ('c' | 'r' | 'd')) => self.ask(letter),
            code => self.walk(code),
        }
        Step::Go
    }

    fn walk(&mut self, code: KeyCode) {
        let (up, by) = match code {
            KeyCode::Up | KeyCode::Char('k') => (true, 1),
            KeyCode::Down | KeyCode::Char('j') => (false, 1),
            KeyCode::PageUp => (true, PAGE),
            KeyCode::PageDown => (false, PAGE),
            KeyCode::Home => (true, usize::MAX),
            KeyCode::End => (false, usize::MAX),
            _ => return,
        };
        let list = match self.pane {
            Pane::Workers => &mut self.workers,
            Pane::Calls => &mut self.calls,
            Pane::Events => {
                let most = self.events.len().saturating_sub(1);
                self.back = if up { self.back.saturating_add(by).min(most) } else { self.back.saturating_sub(by) };
                return;
            }
        };
        let most = list.rows.len().saturating_sub(1);
        list.at = if up { list.at.saturating_sub(by) } else { list.at.saturating_add(by).min(most) };
    }

    /// Asks whether to do what a key stands for, with the chosen row.
    fn ask(&mut self, letter: char) {
        let wanted = match (letter, self.pane) {
            ('c', Pane::Calls) => self.chosen_call().map(|call| {
                let question = format!("Cancel the call {} of {}?", short(&call.call_id), call.tool);
                (call.state.is_open(), Wish::Cancel { call: call.call_id.clone() }, question)
            }),
            ('r' | 'd', Pane::Workers) => self.workers.chosen().map(|row| {
                let source = row.key.split('\n').next().unwrap_or_default().to_owned();
                if letter == 'r' {
                    let question = format!("Restart the workers of {source}? Calls are finished first.");
                    (true, Wish::Restart { source }, question)
                } else {
                    let question = format!("Drain the workers of {source}? Calls are finished, then they end.");
                    (true, Wish::Drain { source }, question)
                }
            }),
            ('c', _) => return self.say("choose a call first: Tab goes to the calls"),
            _ => return self.say("choose a worker first: Tab goes to the workers"),
        };
        match wanted {
            Some((true, wish, question)) => self.question = Some((wish, question)),
            Some((false, ..)) => self.say("this call has ended"),
            None => self.say("there is nothing to choose"),
        }
    }

    fn chosen_call(&self) -> Option<&CallInfo> {
        let row = self.calls.chosen()?;
        self.infos.iter().find(|call| call.call_id == row.key)
    }

    fn about_chosen(&self) -> Option<String> {
        match self.pane {
            Pane::Calls => self.chosen_call().map(as_text),
            Pane::Workers => {
                let row = self.workers.chosen()?;
                let source = row.key.split('\n').next()?;
                let pool = self.status.as_ref()?.pools.iter().find(|pool| pool.source == source)?;
                serde_json::to_string_pretty(&pool).ok()
            }
            Pane::Events => {
                let line = self.events.iter().rev().nth(self.back)?;
                Some(format!("{}\n{}", line.subject, line.what))
            }
        }
    }
}

impl Pane {
    const fn next(self) -> Self {
        match self {
            Self::Workers => Self::Calls,
            Self::Calls => Self::Events,
            Self::Events => Self::Workers,
        }
    }
}
