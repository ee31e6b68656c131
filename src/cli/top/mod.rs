//! `hostler top`: the shared hostler on a terminal, as it runs.

mod history;
mod link;
mod rows;
mod screen;
mod state;
mod view;
mod writer;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use signal_hook::consts::SIGTSTP;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{self, Receiver};
use tokio::time::{MissedTickBehavior, interval};

use super::style::{self, Refusal};
use crate::config::Environment;
use crate::process::Signals;
use crate::telemetry;
use link::{Message, Wish};
use screen::Screen;
use state::{State, Step};
use writer::is_gone;

/// How often it is drawn at most, and how often the second's figures end.
const DRAWN: Duration = Duration::from_millis(100);
const FRAMES_PER_SECOND: u32 = 10;
/// The messages that wait to be shown. Events beyond them are left out where they come from.
const WAITING: usize = 1024;

pub(super) async fn run(environment: &Arc<Environment>) -> Result<ExitCode, Refusal> {
    needs_terminal(environment)?;
    // What is wrong with the place of the shared hostler is said before the terminal is taken.
    super::shared::place(environment)?;
    let signals = style::signals()?;
    let stops = signal(SignalKind::from_raw(SIGTSTP)).map_err(taken)?;
    telemetry::start_thread();
    let (messages, mut heard) = mpsc::channel(WAITING);
    let wishes = link::start(environment, &messages).map_err(taken)?;
    let mut screen = Screen::take(messages).map_err(taken)?;
    let done = show(&mut screen, &mut heard, &wishes, (signals, stops)).await;
    let left = screen.give_back();
    let failed = [left.as_ref().err(), done.as_ref().err().and_then(|refusal| refusal.source.as_ref())];
    let is_closed = failed.into_iter().flatten().any(is_gone);
    // Nothing can be printed there.
    if is_closed { Ok(ExitCode::from(style::CANCELLED)) } else { done }
}

/// Shows what comes until a key or a signal ends it.
async fn show(
    screen: &mut Screen,
    heard: &mut Receiver<Message>,
    wishes: &SyncSender<Wish>,
    (signals, mut stops): (Signals, Signal),
) -> Result<ExitCode, Refusal> {
    let mut state = State::default();
    let mut frames = interval(DRAWN);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut frame, mut is_changed) = (0, true);
    loop {
        tokio::select! {
            message = heard.recv() => {
                is_changed = true;
                match state.take(message.unwrap_or(Message::Closed)) {
                    Step::Go => {}
                    Step::Ask(wish) => {
                        if wishes.try_send(wish).is_err() {
                            state.say("hostler has not answered the last ones yet");
                        }
                    }
                    Step::Repaint => screen.repaint(),
                    Step::Suspend => screen.suspend().map_err(taken)?,
                    Step::Leave => return Ok(ExitCode::SUCCESS),
                }
            }
            _ = frames.tick() => {
                frame = (frame + 1) % FRAMES_PER_SECOND;
                if frame == 0 {
                    state.second();
                    is_changed = true;
                }
                if is_changed {
                    is_changed = !screen.draw(&mut state).map_err(taken)?;
                }
            }
            Some(()) = stops.recv() => {
                screen.suspend().map_err(taken)?;
                is_changed = true;
            }
            name = signals.first() => return Err(Refusal::cancelled(format!("ended by {name}"))),
        }
    }
}

/// Refuses where nothing can be drawn.
fn needs_terminal(environment: &Environment) -> Result<(), Refusal> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        let fix = "run it at one; `hostler status --json` and `hostler logs -f --json` are for programs";
        return Err(Refusal::new("`hostler top` needs a terminal", fix));
    }
    let what = match environment.text("TERM") {
        None => "`hostler top` needs to know the terminal's type: TERM is not set",
        Some("dumb") => "`hostler top` cannot draw on a dumb terminal (TERM=dumb)",
        Some(_) => return Ok(()),
    };
    let fix = "set TERM to its type, for example xterm-256color; `hostler status --watch` and `hostler logs -f` print on any terminal";
    Err(Refusal::new(what, fix))
}

fn taken(error: std::io::Error) -> Refusal {
    Refusal::system("the terminal cannot be used", error)
}
