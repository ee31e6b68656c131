//! How the state is drawn.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Clear, Paragraph, Row, Sparkline, Table, TableState, Wrap};

use super::history::Series;
use super::rows::{CALLS, Kind, WORKERS, memory};
use super::state::{List, Pane, State};
use crate::cli::style::{cut, plain};

/// Below this height only the list with the keys is shown.
const LOW: u16 = 18;
/// From this width on calls have a column for their client.
const WIDE: u16 = 100;
/// The lines of the figures.
const FIGURES: u16 = 5;

/// Draws a frame. Details that were scrolled too far are moved back to their end.
pub fn draw(state: &mut State, has_colours: bool, frame: &mut Frame) {
    let view = View { state, has_colours };
    let is_low = frame.area().height < LOW;
    let figures = if is_low { 0 } else { FIGURES };
    let parts = [Constraint::Length(1), Constraint::Length(figures), Constraint::Fill(1), Constraint::Length(1)];
    let [head, figures, lists, foot] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(view.head(), head);
    if is_low {
        view.list(state.pane, lists, frame);
    } else {
        view.figures(figures, frame);
        let shares = [Constraint::Fill(3), Constraint::Fill(4), Constraint::Fill(3)];
        let [workers, calls, events] = Layout::vertical(shares).areas(lists);
        view.list(Pane::Workers, workers, frame);
        view.list(Pane::Calls, calls, frame);
        view.list(Pane::Events, events, frame);
    }
    frame.render_widget(view.foot(), foot);
    let above = state.details.as_ref().map(|(text, above)| view.details(text, *above, frame));
    if let (Some((_, above)), Some(shown)) = (&mut state.details, above) {
        *above = shown;
    }
}

struct View<'a> {
    state: &'a State,
    has_colours: bool,
}

impl View<'_> {
    fn colour(&self, colour: Color) -> Style {
        if self.has_colours { Style::new().fg(colour) } else { Style::new() }
    }

    /// What is less important.
    fn quiet(&self) -> Style {
        if self.has_colours { Style::new().add_modifier(Modifier::DIM) } else { Style::new() }
    }

    fn head(&self) -> Line<'_> {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        if let Some(why) = &self.state.gone {
            let why = Span::styled(foreign(why), self.colour(Color::Red));
            return Line::from(vec![Span::styled("hostler  ", bold), why]);
        }
        let Some(status) = &self.state.status else { return Line::styled("hostler  connecting …", bold) };
        let usage = &status.usage;
        let draining = if status.draining { "  draining" } else { "" };
        let text = format!(
            "process {}  up {}  {}  sessions {}  running {} of {}  queued {}  workers {} of {}",
            status.version.pid,
            humantime::format_duration(std::time::Duration::from_secs(status.up_s)),
            memory(status.rss),
            status.sessions.len(),
            usage.running,
            usage.max_concurrent_calls,
            usage.waiting,
            usage.workers,
            usage.max_workers,
        );
        Line::from(vec![
            Span::styled(format!("hostler {}  ", status.version.number), bold),
            Span::raw(text),
            Span::styled(draining, self.colour(Color::Yellow)),
        ])
    }

    fn figures(&self, area: Rect, frame: &mut Frame) {
        let history = &self.state.history;
        let [rates, times] = Layout::horizontal([Constraint::Fill(1); 2]).areas(area);
        let title = format!(" calls/s {}  failed/s {} ", history.calls.newest(), history.failures.newest());
        self.line(&title, &history.calls, Color::Cyan, rates, frame);
        let (median, slow) = (time(history.median.newest()), time(history.slow.newest()));
        self.line(&format!(" time p50 {median}  p95 {slow} "), &history.slow, Color::Magenta, times, frame);
    }

    /// A sparkline, whose newest second is at the right.
    fn line(&self, title: &str, series: &Series, colour: Color, area: Rect, frame: &mut Frame) {
        let width = usize::from(area.width.saturating_sub(2));
        let last = series.last(width);
        let mut data = vec![0; width - last.len().min(width)];
        data.extend(last);
        let block = Block::new().borders(Borders::ALL).title(title).border_style(self.quiet());
        frame.render_widget(Sparkline::default().data(data).style(self.colour(colour)).block(block), area);
    }

    fn block(&self, pane: Pane, title: &str) -> Block<'_> {
        let has_keys = self.state.pane == pane;
        let style = if has_keys { self.colour(Color::Cyan) } else { self.quiet() };
        let title = if has_keys { format!(" ▸ {title} ") } else { format!(" {title} ") };
        Block::new().borders(Borders::ALL).title(title).border_style(style)
    }

    fn list(&self, pane: Pane, area: Rect, frame: &mut Frame) {
        let state = self.state;
        match pane {
            Pane::Workers => {
                let widths = [18, 9, 8, 8, 9, 8].map(Constraint::Length).into_iter().chain([Constraint::Fill(1)]);
                let title = format!("workers {}", state.workers.rows.len());
                self.table(pane, &title, &state.workers, (&WORKERS, widths.collect()), area, frame);
            }
            Pane::Calls => {
                // Why a call failed matters more than who asked for it.
                let client = if area.width < WIDE { 0 } else { 14 };
                let widths = [10, 9, 10, 24, client].map(Constraint::Length).into_iter().chain([Constraint::Fill(1)]);
                self.table(pane, &state.title_of_calls(), &state.calls, (&CALLS, widths.collect()), area, frame);
            }
            Pane::Events => self.events(area, frame),
        }
    }

    fn table(
        &self,
        pane: Pane,
        title: &str,
        list: &List,
        (head, widths): (&[&'static str], Vec<Constraint>),
        area: Rect,
        frame: &mut Frame,
    ) {
        let rows = list.rows.iter().map(|row| {
            let style = match row.kind {
                Kind::Busy => self.colour(Color::Green),
                Kind::Idle => Style::new(),
                Kind::Failed => self.colour(Color::Red),
            };
            Row::new(row.cells.iter().map(|cell| Cell::new(foreign(cell)))).style(style)
        });
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let mut table =
            Table::new(rows, widths).header(Row::new(head.iter().copied()).style(bold)).block(self.block(pane, title));
        if self.state.pane == pane {
            table = table.row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        }
        let mut seen = TableState::default().with_selected((!list.rows.is_empty()).then_some(list.at));
        frame.render_stateful_widget(table, area, &mut seen);
    }

    fn events(&self, area: Rect, frame: &mut Frame) {
        let height = usize::from(area.height.saturating_sub(2));
        let events = &self.state.events;
        let end = events.len().saturating_sub(self.state.back);
        let lines: Vec<Line> = events
            .range(end.saturating_sub(height)..end)
            .map(|said| {
                let style = if said.is_fault { self.colour(Color::Red) } else { Style::new() };
                Line::from(vec![
                    Span::styled(clock(said.time_ms), self.quiet()),
                    Span::raw(foreign(&said.subject)),
                    Span::styled(format!(" {}", foreign(&said.what)), style),
                ])
            })
            .collect();
        let title =
            if self.state.back == 0 { "events".to_owned() } else { format!("events, {} newer", self.state.back) };
        frame.render_widget(Paragraph::new(lines).block(self.block(Pane::Events, &title)), area);
    }

    fn foot(&self) -> Line<'_> {
        if let Some((_, question)) = &self.state.question {
            let style = self.colour(Color::Yellow).add_modifier(Modifier::BOLD);
            return Line::styled(format!("{} y: yes, any other key: no", foreign(question)), style);
        }
        if let Some(remark) = self.state.remark() {
            return Line::styled(foreign(remark), self.colour(Color::Yellow));
        }
        let own = match self.state.pane {
            Pane::Workers => "r restart  d drain  Enter details  ",
            Pane::Calls => "c cancel  Enter details  ",
            Pane::Events => "Enter details  ",
        };
        Line::styled(format!("{own}Tab next list  ↑↓ choose  q quit"), self.quiet())
    }

    /// Shows a text over everything else, scrolled down by this many lines or to its end; returns by how many.
    fn details(&self, text: &str, above: u16, frame: &mut Frame) -> u16 {
        let area = frame.area();
        let inner = Rect { x: 2, y: 1, width: area.width.saturating_sub(4), height: area.height.saturating_sub(2) };
        let inner = inner.intersection(area);
        let lines: Vec<Line> = text.lines().map(|line| Line::from(plain(line))).collect();
        let block =
            Block::new().borders(Borders::ALL).title(" details ").title_bottom(" ↑↓ scroll, any other key closes ");
        let block = block.border_style(self.colour(Color::Cyan));
        let text = Paragraph::new(lines).wrap(Wrap { trim: false }).block(block);
        let most = text.line_count(inner.width.saturating_sub(2)).saturating_sub(usize::from(inner.height));
        let above = above.min(u16::try_from(most).unwrap_or(u16::MAX));
        frame.render_widget(Clear, inner);
        frame.render_widget(text.scroll((above, 0)), inner);
        above
    }
}

/// A foreign text as a part of a line.
fn foreign(text: &str) -> String {
    const WIDEST: usize = 500;
    plain(&cut(text, WIDEST)).replace(['\n', '\t'], " ")
}

/// The time of day, as the log has it, and a space.
fn clock(time_ms: u64) -> String {
    if time_ms == 0 {
        return String::new();
    }
    let second = time_ms / 1000 % 86_400;
    format!("{:02}:{:02}:{:02} ", second / 3600, second / 60 % 60, second % 60)
}

fn time(microseconds: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let milliseconds = microseconds as f64 / 1000.0;
    if milliseconds < 100.0 { format!("{milliseconds:.1} ms") } else { format!("{milliseconds:.0} ms") }
}

#[cfg(test)]
mod tests;
