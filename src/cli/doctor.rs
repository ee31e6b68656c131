//! `hostler doctor`

use std::fmt::Write;
use std::process::ExitCode;

use clap::builder::styling::{AnsiColor, Style};

use super::options::Doctor;
use super::style;
use crate::doctor::{CheckResult, State, examine};
use crate::runtime::Workspace;

const PROBLEMS: u8 = 1;

pub(super) async fn run(app: &Workspace, args: &Doctor) -> ExitCode {
    // Executables are part of it: their tools, and the secrets they need.
    app.calls.registry.asked().await;
    let results = examine(app, !args.offline).await;
    if args.json {
        style::answer_json(&results);
    } else {
        style::answer(&as_text(&results, style::colours(&std::io::stdout())));
    }
    let worst = results.iter().map(|result| result.state).max();
    if worst == Some(State::Bad) { ExitCode::from(PROBLEMS) } else { ExitCode::SUCCESS }
}

fn as_text(results: &[CheckResult], colours: bool) -> String {
    let width = results.iter().map(|result| result.about.len()).max().unwrap_or(0);
    let mut text = String::new();
    for result in results {
        let (mark, style): (_, Style) = match result.state {
            State::Good => ("ok   ", AnsiColor::Green.on_default()),
            State::Doubtful => ("warn ", AnsiColor::Yellow.on_default().bold()),
            State::Bad => ("bad  ", AnsiColor::Red.on_default().bold()),
        };
        let mark = style::paint(mark, style, colours);
        let _ = writeln!(text, "{mark}  {:width$}  {}", result.about, style::plain(&result.found));
        if let Some(fix) = &result.fix {
            let _ = writeln!(text, "       {:width$}  → {}", "", style::plain(fix));
        }
    }
    let count = |state: State| results.iter().filter(|result| result.state == state).count();
    let (bad, doubtful) = (count(State::Bad), count(State::Doubtful));
    let verdict = match (bad, doubtful) {
        (0, 0) => "everything works".to_owned(),
        (0, doubtful) => format!("everything works; warnings: {doubtful}"),
        (bad, _) => format!("problems: {bad}"),
    };
    text + &verdict + "\n"
}
