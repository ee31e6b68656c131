//! `hostler call TOOL`, and what people see of a call: a spinner and the tool's own output while it runs; then its outcome, text as
//! it is, files as bytes or described, anything else as indented JSON.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::options::Call;
use super::style::Refusal;
use super::{arguments, ask, show, style};
use crate::call::{Arguments, CallRequest, Caller, Elicited};
use crate::control::{Event, Question, RunParams};
use crate::outcome::{Code, Fault, File, Metadata, Outcome, each_file, fault_in_envelope, in_envelope, may_hold_files};
use crate::pool::Listener;
use crate::protocol::{ProgressNote, TraceContext};
use crate::runtime::Workspace;
use crate::shared::{CommandSession, Hears, Opened};
use crate::worker::LogLine;

pub(super) async fn run(app: &Workspace, args: &Call) -> Result<ExitCode, Refusal> {
    // The arguments of an executable are only known once it has been asked.
    app.calls.registry.asked_for(&args.tool).await;
    if args.help {
        return help(app, &args.tool);
    }
    let catalogue = app.calls.registry.catalogue();
    let schema = catalogue.resolve(&args.tool).ok().map(|tool| tool.input_schema());
    let mut arguments = arguments::input(args.input.as_deref())?;
    arguments::add(&mut arguments, &args.arguments, schema)?;
    let signals = style::signals()?;
    let feedback = Arc::new(Feedback::new());
    let listener = Arc::clone(&feedback) as Arc<dyn crate::pool::Listener>;
    let client = ask::person(&feedback);
    let trace = TraceContext::of_variables(|name| app.config().environment.text(name).map(str::to_owned));
    let caller = Arc::new(Caller { trace, ..Caller::default() });
    let key = args.key.clone();
    let request = CallRequest {
        caller,
        key,
        needs_journal: true,
        listener,
        client,
        ..CallRequest::new(args.tool.clone(), arguments)
    };
    let outcome = tokio::select! {
        outcome = app.calls.call(request) => Ok(outcome),
        name = signals.first() => Err(name),
    };
    feedback.end();
    let code = match outcome {
        Ok(outcome) => Ok(report(&outcome, OutputFormat::of(args), &feedback)),
        Err(name) => Err(interrupted(args, &name)),
    };
    app.close_hearing(&signals).await;
    app.runtime().end_journal().await;
    code
}

/// Starts the call in the shared hostler, and prints its id.
async fn in_background(
    opened: Opened,
    args: &Call,
    mut arguments: Arguments,
    feedback: &Feedback,
) -> Result<ExitCode, Refusal> {
    let lost = |error| Refusal::system("the shared hostler did not answer", error);
    let mut session = CommandSession::of(opened).map_err(lost)?;
    if !args.arguments.is_empty() {
        let schema = session.schema(&args.tool, feedback).await.map_err(lost)?;
        arguments::add(&mut arguments, &args.arguments, schema.as_ref())?;
    }
    let timeout_ms = args.timeout.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
    let params = json!({
        "tool": args.tool, "arguments": arguments, "background": true, "timeout_ms": timeout_ms, "max_retries": args.max_retries, "key": args.key,
    });
    let begun = session.ask("calls.start", params, feedback).await.map_err(super::rpc::unanswered)?;
    let begun: Value = serde_json::from_str(begun.get()).unwrap_or_default();
    if args.json {
        style::answer_json(&begun);
    } else {
        style::answer(begun["call"].as_str().unwrap_or_default());
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the outcome of a call that was waited for.
pub(super) fn report_of(outcome: &Outcome, json: bool) -> ExitCode {
    let format = if json { OutputFormat::Whole } else { OutputFormat::Plain };
    report(outcome, format, &Feedback::new())
}

/// The same by the shared hostler; `None` if that ended before the call was sent.
pub(super) async fn by_shared(opened: Opened, args: &Call) -> Result<Option<ExitCode>, Refusal> {
    let arguments = arguments::input(args.input.as_deref())?;
    let signals = style::signals()?;
    let feedback = Feedback::new();
    if args.background {
        return in_background(opened, args, arguments, &feedback).await.map(Some);
    }
    let outcome = tokio::select! {
        outcome = shared_call(opened, args, arguments, &feedback) => outcome,
        name = signals.first() => Err(interrupted(args, &name)),
    };
    feedback.end();
    Ok(outcome?.map(|outcome| report(&outcome, OutputFormat::of(args), &feedback)))
}

async fn shared_call(
    opened: Opened,
    args: &Call,
    mut arguments: Arguments,
    feedback: &Feedback,
) -> Result<Option<Outcome>, Refusal> {
    let Ok(mut session) = CommandSession::of(opened) else { return Ok(None) };
    if !args.arguments.is_empty() {
        let Ok(schema) = session.schema(&args.tool, feedback).await else { return Ok(None) };
        arguments::add(&mut arguments, &args.arguments, schema.as_ref())?;
    }
    let params = RunParams { tool: args.tool.clone(), arguments, can_ask: ask::is_there(), key: args.key.clone() };
    let began = Instant::now();
    let Ok(call) = session.send_call(params).await else { return Ok(None) };
    let outcome = session.outcome(call, feedback).await;
    Ok(Some(outcome.unwrap_or_else(|error| {
        let text = format!("{error} before {} did; it is not known how far it came", args.tool);
        Outcome {
            call_id: String::new(),
            tool: args.tool.clone(),
            ended: Err(Fault::new(Code::OutcomeUnknown, text)),
            latency: began.elapsed(),
            metadata: Metadata::default(),
        }
    })))
}

fn interrupted(args: &Call, name: &str) -> Refusal {
    Refusal::cancelled(format!("CANCELLED: the call of {} was interrupted by {name}", args.tool))
}

impl Hears for Feedback {
    fn say(&self, text: &str) {
        self.bar.suspend(|| style::talk(text));
    }

    fn event(&self, event: Event) {
        match event {
            Event::Note { text } => self.note(&text),
            Event::GoesOn => self.goes_on(),
            Event::Progress(note) => self.progress(&note),
            Event::Output { stream, text } => self.output(&stream, &text),
        }
    }

    async fn elicit(&self, question: Question) -> Elicited {
        let Question { tool, message, schema, .. } = question;
        match ask::answer(self, tool, message, schema) {
            Ok(answer) => answer.await,
            Err(_) => Elicited::Cancel,
        }
    }
}

fn help(app: &Workspace, name: &str) -> Result<ExitCode, Refusal> {
    if name.is_empty() {
        style::answer(&super::options::help_of("call"));
    } else {
        let catalogue = app.calls.registry.catalogue();
        let tool = catalogue.resolve(name).map_err(|reason| show::missing(name, reason))?;
        style::answer(&show::help(tool, style::terminal_width()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Feedback on standard error: a spinner on a terminal, lines in a pipe.
pub(super) struct Feedback {
    bar: ProgressBar,
    terminal: bool,
    /// The end of the tool's output, so that it is not printed twice.
    shown: Mutex<String>,
}

/// More than the last output that a fault repeats.
const KEPT: usize = 64 * 1024;

impl Feedback {
    pub fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = if terminal { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} {wide_msg} {elapsed:.dim}") {
            bar.set_style(style);
        }
        Self { bar, terminal, shown: Mutex::default() }
    }

    /// Whether every line of a text was shown during the call.
    pub fn has_shown(&self, text: &str) -> bool {
        let shown = self.shown.lock();
        text.lines().all(|line| shown.contains(line.trim()))
    }

    /// Removes the spinner while a person is asked something.
    pub fn pause(&self) {
        self.bar.disable_steady_tick();
        self.bar.finish_and_clear();
    }

    /// Removes the spinner, and ends an open line of the tool's output.
    pub fn end(&self) {
        self.bar.finish_and_clear();
        let shown = self.shown.lock();
        if !shown.is_empty() && !shown.ends_with('\n') {
            style::talk("\n");
        }
    }
}

impl Listener for Feedback {
    fn note(&self, text: &str) {
        if self.terminal {
            self.bar.enable_steady_tick(Duration::from_millis(100));
            self.bar.set_message(style::plain(text));
        } else if !text.starts_with("starting ") && !text.ends_with(" is ready") {
            style::note(text);
        }
    }

    fn goes_on(&self) {
        self.bar.set_message("");
    }

    fn progress(&self, note: &ProgressNote) {
        let share = note.total.map(|total| format!("{}/{total} ", note.progress)).unwrap_or_default();
        let text = format!("{share}{}", note.message.as_deref().unwrap_or_default());
        if self.terminal {
            self.bar.enable_steady_tick(Duration::from_millis(100));
            self.bar.set_message(style::plain(&text));
        }
    }

    fn output(&self, _stream: &str, text: &str) {
        let mut shown = self.shown.lock();
        shown.push_str(text);
        if shown.len() > 2 * KEPT {
            let end = (shown.len() - KEPT..shown.len()).find(|at| shown.is_char_boundary(*at)).unwrap_or(shown.len());
            shown.drain(..end);
        }
        self.bar.suspend(|| style::talk(text));
    }

    // Warnings and errors reach standard error through the log; the rest only with -v.
    fn log(&self, _line: &LogLine) {}
}

/// The format of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputFormat {
    /// The result alone; a fault goes to standard error.
    Plain,
    /// The whole outcome as JSON.
    Whole,
    /// Whether the tool succeeded, with its result or error.
    Envelope,
}

impl OutputFormat {
    pub(super) fn of(args: &Call) -> Self {
        match (args.json, args.envelope) {
            (true, _) => Self::Whole,
            (false, true) => Self::Envelope,
            (false, false) => Self::Plain,
        }
    }
}

/// Prints an outcome and returns its exit status.
pub(super) fn report(outcome: &Outcome, dress: OutputFormat, feedback: &Feedback) -> ExitCode {
    match (&outcome.ended, dress) {
        (_, OutputFormat::Whole) => style::answer_json(outcome),
        (Ok(raw), OutputFormat::Envelope) => style::answer(&indented(in_envelope(raw).get())),
        (Err(fault), OutputFormat::Envelope) => style::answer(&indented(fault_in_envelope(fault).get())),
        (Ok(raw), OutputFormat::Plain) => {
            if !answer_file(raw.get()) {
                style::answer(&readable(raw.get()));
            }
        }
        (Err(fault), OutputFormat::Plain) => complain(fault, feedback),
    }
    outcome.ended.as_ref().map_or_else(|fault| ExitCode::from(fault.code.exit_status()), |_| ExitCode::SUCCESS)
}

/// A string as it is, anything else as indented JSON.
pub(super) fn readable(raw: &str) -> String {
    serde_json::from_str(raw).unwrap_or_else(|_| indented(raw))
}

fn complain(fault: &Fault, feedback: &Feedback) {
    style::error(&fault.to_string());
    let details = &fault.details;
    // uv's reason is part of the message already, and the last output may have been shown during the call.
    let is_known =
        |text: &&str| feedback.has_shown(text) || text.lines().all(|line| fault.message.contains(line.trim()));
    let stderr = details.stderr.as_deref().filter(|_| fault.code != Code::EnvironmentFailed);
    let stderr = stderr.filter(|text| !is_known(text));
    let more = details.traceback.as_deref().or(stderr);
    if let Some(text) = more {
        style::note(text.trim_end());
    }
}

/// Prints a result that is a file, or on a terminal one that contains files. False for any other result.
fn answer_file(json: &str) -> bool {
    if !may_hold_files(json) {
        return false;
    }
    let Ok(mut result) = serde_json::from_str::<Value>(json) else { return false };
    let is_terminal = std::io::stdout().is_terminal();
    match result.as_object().and_then(File::of) {
        Some(file) if !is_terminal => match BASE64.decode(file.base64.as_bytes()) {
            Ok(bytes) => {
                style::answer_bytes(&bytes);
                true
            }
            Err(_) => false,
        },
        Some(file) => {
            let keep = file.name.unwrap_or("FILE");
            style::answer(&format!("{}; redirect to save it: … > {keep}", words(&file)));
            true
        }
        None if is_terminal => {
            shorten(&mut result);
            style::answer_json(&result);
            true
        }
        None => false,
    }
}

fn words(file: &File<'_>) -> String {
    let name = file.name.map(|name| format!("{name}, ")).unwrap_or_default();
    format!("{name}{}, {} bytes", file.mime_type, file.size())
}

/// Replaces the bytes of files by their size.
fn shorten(value: &mut Value) {
    each_file(value, &mut |object| {
        let text = File::of(object).map(|file| format!("({} bytes)", file.size()));
        object.insert("base64".to_owned(), text.into());
    });
}

/// Indents a JSON text by two spaces a level; numbers keep every digit, unlike with parsed values.
fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let mut characters = json.chars().peekable();
    while let Some(c) = characters.next() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '"' => {
                in_string = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                while characters.next_if(char::is_ascii_whitespace).is_some() {}
                if characters.peek().is_some_and(|next| matches!(next, '}' | ']')) {
                    out.extend(characters.next());
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_within_a_result_are_described() {
        let file = json!({"mime_type": "image/png", "base64": "iVBO", "name": "a.png"});
        let mut result = json!({"pages": [file, 3]});
        shorten(&mut result);
        assert_eq!(result["pages"][0]["base64"], "(3 bytes)");
        assert_eq!(words(&File::of(file.as_object().unwrap()).unwrap()), "a.png, image/png, 3 bytes");
    }

    #[test]
    fn indentation_is_that_of_serde_json() {
        let value = json!({"a": [1, {"b": []}, "x{,}\\\"[", {}], "c": null, "d": [[]], "e": "é\n"});
        assert_eq!(indented(&value.to_string()), serde_json::to_string_pretty(&value).unwrap());
        assert_eq!(indented("[ ]"), "[]");
    }

    #[test]
    fn numbers_keep_every_digit() {
        assert_eq!(
            indented("[1000000000000000000000000000000,0.10]"),
            "[\n  1000000000000000000000000000000,\n  0.10\n]"
        );
    }
}
