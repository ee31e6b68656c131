//! `hostler list`

use std::process::ExitCode;

use clap::builder::styling::{AnsiColor, Style};

use super::call::Feedback;
use super::options::List;
use super::style::{self, Refusal};
use crate::registry::{Filter, Listing, RoleKind, Row};
use crate::runtime::Workspace;
use crate::shared::{CommandSession, Opened};

const BROKEN: Style = AnsiColor::Red.on_default();

pub(super) async fn run(app: &Workspace, args: &List) -> ExitCode {
    if args.refresh {
        style::note(&app.calls.refresh().await.to_string());
    } else {
        app.calls.registry.asked().await;
    }
    let (registry, filter) = (&app.calls.registry, args.filter());
    if let Some(unknown) = filter.unknown_mode(&registry.catalogue()) {
        return Refusal::new(unknown, "define others in [policy.modes]").complain();
    }
    report(&registry.listing(&filter), args)
}

/// The same by the shared hostler; `None` if that ended before it answered.
pub(super) async fn by_shared(opened: Opened, args: &List) -> Option<ExitCode> {
    let listing = CommandSession::of(opened).ok()?.list(args.filter(), &Feedback::new()).await.ok()?;
    Some(report(&listing, args))
}

fn report(listing: &Listing, args: &List) -> ExitCode {
    if args.json {
        style::answer_json(&listing.rows);
        return ExitCode::SUCCESS;
    }
    if !listing.rows.is_empty() {
        style::answer(&as_text(&listing.rows));
    }
    if let Some(advice) = &listing.advice {
        style::warn(advice);
    }
    ExitCode::SUCCESS
}

impl List {
    fn filter(&self) -> Filter {
        let (category, tag, pack) = (self.category.clone(), self.tag.clone(), self.pack.clone());
        Filter { mode: self.mode.clone(), category, tag, pack, kind: self.kind.clone() }
    }
}

fn as_text(rows: &[Row]) -> String {
    let cells = rows.iter().map(|row| {
        let text = match &row.problem {
            Some(reason) => format!("{}: {reason}", row.origin),
            None => row.uri.iter().chain(&row.description).cloned().collect::<Vec<_>>().join("  "),
        };
        let kind = if row.role == RoleKind::Tool.word() { &row.kind } else { &row.role };
        vec![style::plain(&row.name), kind.to_owned(), row.status.clone(), style::plain(&text)]
    });
    let text = style::table(&cells.collect::<Vec<_>>(), style::terminal_width());
    if !style::colours(&std::io::stdout()) {
        return text;
    }
    let lines = text.lines().zip(rows).map(|(line, row)| {
        let painted = if row.problem.is_some() { style::paint(line, BROKEN, true) } else { line.to_owned() };
        painted + "\n"
    });
    lines.collect()
}
