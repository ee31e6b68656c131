//! `hostler doctor`

use std::fmt::Write;
use std::process::ExitCode;

use clap::builder::styling::{AnsiColor, Style};

use super::options::Doctor;
use super::style;
use crate::doctor::{Sign, State, examine};
use crate::runtime::Workspace;

const SICK: u8 = 1;

pub(super) async fn run(app: &Workspace, asked: &Doctor) -> ExitCode {
    // What executables offer, and which secrets they want, is part of it.
    app.dispatcher.registry.asked().await;
    let signs = examine(app, !asked.offline).await;
    if asked.json {
        style::answer(&serde_json::to_string_pretty(&signs).unwrap_or_default());
    } else {
        style::answer(&as_text(&signs, style::colours(&std::io::stdout())));
    }
    let worst = signs.iter().map(|sign| sign.state).max();
    if worst == Some(State::Bad) { ExitCode::from(SICK) } else { ExitCode::SUCCESS }
}

fn as_text(signs: &[Sign], colours: bool) -> String {
    let width = signs.iter().map(|sign| sign.about.len()).max().unwrap_or(0);
    let mut text = String::new();
    for sign in signs {
        let (mark, style): (_, Style) = match sign.state {
            State::Good => ("ok   ", AnsiColor::Green.on_default()),
            State::Doubtful => ("doubt", AnsiColor::Yellow.on_default().bold()),
            State::Bad => ("bad  ", AnsiColor::Red.on_default().bold()),
        };
        let mark = style::paint(mark, style, colours);
        let _ = writeln!(text, "{mark}  {:width$}  {}", sign.about, sign.found);
        if let Some(fix) = &sign.fix {
            let _ = writeln!(text, "       {:width$}  → {fix}", "");
        }
    }
    let count = |state: State| signs.iter().filter(|sign| sign.state == state).count();
    let (bad, doubtful) = (count(State::Bad), count(State::Doubtful));
    let verdict = match (bad, doubtful) {
        (0, 0) => "All is well.".to_owned(),
        (0, doubtful) => format!("All works; {doubtful} to think about."),
        (bad, _) => format!("{bad} to mend."),
    };
    text + &verdict + "\n"
}
