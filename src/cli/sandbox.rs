//! `hostler sandbox learn TOOL`: calls a tool without its sandbox, and proposes the smallest one that would have let it work.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};
use similar::TextDiff;

use super::call::Feedback;
use super::options::Learn;
use super::style::{self, Refusal};
use super::{arguments, ask, show};
use crate::call::{CallRequest, Caller};
use crate::config::environment::{state, user_config, user_secrets};
use crate::config::learned::{Learned, Surroundings, learn};
use crate::config::origin::Diagnosis;
use crate::config::private_file::replace_shared;
use crate::config::recorder::Recorder;
use crate::config::sandbox_edit::with_sandbox;
use crate::config::{Config, ConfigOptions};
use crate::discovery::Kind;
use crate::outcome::Outcome;
use crate::pool::Listener;
use crate::process::{WallLayer, can_record, is_below_hostler, is_marked};
use crate::protocol::TraceContext;
use crate::registry::Tool;
use crate::runtime::Workspace;

/// The most paths that are listed of a kind.
const MOST_LISTED: usize = 20;

pub(super) async fn run(
    args: &Learn,
    asked: &ConfigOptions,
    directory: &Path,
    begin: impl FnOnce(&Workspace),
) -> Result<ExitCode, Refusal> {
    if is_marked(&asked.environment) || is_below_hostler() {
        let fix = "run it in a terminal that no tool has started";
        return Err(Refusal::new("a tool may not run another one without its sandbox", fix));
    }
    can_record().map_err(|error| {
        let fix = "write the sandbox by hand (docs/sandbox.md); an error that a sandbox causes says what would open it";
        Refusal { fix: fix.to_owned(), ..Refusal::system("what a tool does cannot be recorded here", error) }
    })?;
    let recorder = Arc::new(Recorder::default());
    let app = Workspace::open_recording(asked, directory, &recorder)?;
    begin(&app);
    app.calls.registry.asked_for(&args.tool).await;
    let catalogue = app.calls.registry.catalogue();
    let tool = catalogue.resolve(&args.tool).map_err(|reason| show::missing(&args.tool, reason))?;
    let pack = &tool.entry.file.pack;
    if tool.entry.file.kind == Kind::Builtin && pack != "bash" {
        let what = format!("{} runs inside hostler, and only processes have a sandbox", tool.name);
        return Err(Refusal::new(what, "it is kept in its `roots`; of the built-in tools, learn about `bash`"));
    }
    recorder.begin(pack);
    let outcome = call(&app, args, tool).await?;
    let proposal = Proposal::of(&app.config(), tool, &recorder, args.add)?;
    proposal.print(args, &outcome);
    if args.write && outcome.ended.is_ok() && proposal.is_news() {
        if proposal.learned.is_risky {
            let fix = "read the warnings, and write what of it the tool should have into hostler.toml yourself";
            return Err(Refusal::new("nothing is written: the proposal opens too much", fix));
        }
        proposal.write()?;
    }
    Ok(outcome.ended.as_ref().map_or_else(|fault| ExitCode::from(fault.code.exit_status()), |_| ExitCode::SUCCESS))
}

/// Makes the call, and ends the tool's processes.
async fn call(app: &Workspace, args: &Learn, tool: &Tool) -> Result<Arc<Outcome>, Refusal> {
    let mut arguments = arguments::input(args.input.as_deref())?;
    arguments::add(&mut arguments, &args.arguments, Some(tool.input_schema()))?;
    let signals = style::signals()?;
    let feedback = Arc::new(Feedback::new());
    let listener = Arc::clone(&feedback) as Arc<dyn Listener>;
    let client = ask::person(&feedback);
    let trace = TraceContext::of_variables(|name| app.config().environment.text(name).map(str::to_owned));
    let caller = Arc::new(Caller { trace, ..Caller::default() });
    let request = CallRequest { caller, listener, client, ..CallRequest::new(tool.name.clone(), arguments) };
    let outcome = tokio::select! {
        outcome = app.calls.call(request) => Ok(outcome),
        name = signals.first() => Err(name),
    };
    feedback.end();
    app.close_hearing(&signals).await;
    outcome.map_err(|name| {
        Refusal::cancelled(format!("CANCELLED: nothing was learned: {} was interrupted by {name}", tool.name))
    })
}

/// What was learned, and the file that it is for.
struct Proposal {
    pack: String,
    learned: Learned,
    around: Surroundings,
    file: PathBuf,
    before: String,
    /// The text of the file with the proposal, or why it cannot be edited.
    after: Result<String, Diagnosis>,
}

impl Proposal {
    fn of(config: &Config, tool: &Tool, recorder: &Recorder, adds: bool) -> Result<Self, Refusal> {
        let file = config.project().unwrap_or_else(|| user_config(&config.environment));
        let (pack, environment) = (tool.entry.file.pack.clone(), &config.environment);
        let around = Surroundings {
            file: file.clone(),
            home: config.environment.home(),
            tools: config.tools_there().cloned().collect(),
            hidden: tool.entry.settings.sandbox.iter().flat_map(|one| one.hide.clone()).collect(),
            own: [&file]
                .into_iter()
                .cloned()
                .chain([user_config(environment), user_secrets(environment), state(environment)])
                .collect(),
            has_networks: WallLayer::Hosts.is_here(),
        };
        let own = config.packs.get(&pack).into_iter().flat_map(|own| &own.sandbox);
        let is_in_file = |place: &crate::config::origin::Place| *place.file == file;
        let mut own = own.filter(|layer| layer.origin.place().is_some_and(is_in_file));
        let own = own.next_back().map(|layer| layer.value.clone());
        let kept = own.clone().unwrap_or_default();
        let mut learned = learn(&recorder.record(), &around, &kept);
        if let Some(own) = own.filter(|_| adds) {
            learned.sandbox = own.and(&learned.sandbox);
        }
        let before = match std::fs::read_to_string(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.map_err(|error| Refusal::io(format!("cannot read {}", file.display()), error))?,
        };
        let after =
            if kept == learned.sandbox { Ok(before.clone()) } else { with_sandbox(&before, &pack, &learned.sandbox) };
        Ok(Self { pack, learned, around, file, before, after })
    }

    /// Whether the file does not say it already.
    fn is_news(&self) -> bool {
        self.after.as_ref() != Ok(&self.before)
    }

    fn diff(&self) -> Option<String> {
        let after = self.after.as_ref().ok().filter(|after| **after != self.before)?;
        let name = self.file.display().to_string();
        let diff = TextDiff::from_lines(&self.before, after);
        Some(diff.unified_diff().context_radius(3).header(&name, &name).to_string())
    }

    fn print(&self, args: &Learn, outcome: &Outcome) {
        if args.json {
            style::answer_json(&self.as_json(outcome));
        } else {
            style::answer(&self.as_text(outcome));
        }
        if let Err(fault) = &outcome.ended {
            style::error(&fault.to_string());
            let unwritten = if args.write { "; nothing is written" } else { "" };
            style::warn(&format!("the call failed, so that it shows only what the tool needed until then{unwritten}"));
        }
        self.learned.warnings.iter().for_each(|warning| style::warn(warning));
        if args.write || args.json {
            return;
        }
        if let Err(refused) = &self.after {
            style::warn(&refused.to_string());
        } else if self.is_news() && outcome.ended.is_ok() {
            style::note(
                "Nothing is written yet: add the line yourself, or run this again with --write, which makes the call again.",
            );
        }
    }

    fn as_text(&self, outcome: &Outcome) -> String {
        let took = humantime::format_duration(std::time::Duration::from_millis(
            u64::try_from(outcome.latency.as_millis()).unwrap_or(u64::MAX),
        ));
        let how = if outcome.ended.is_ok() { "succeeded" } else { "failed" };
        let head = format!("{} {how} after {took}, without its sandbox\n\n", outcome.tool);
        let paths = |paths: &[PathBuf]| paths.iter().map(|path| self.around.shown(path)).collect::<Vec<_>>();
        let learned = &self.learned;
        let mut rows = Vec::new();
        let kinds = [
            ("reads", paths(&learned.reads)),
            ("writes", paths(&learned.writes)),
            ("connects", learned.network.clone()),
        ];
        for (kind, all) in kinds {
            let more = all.len().saturating_sub(MOST_LISTED);
            let listed = all[..all.len() - more].iter().cloned().chain((more > 0).then(|| format!("and {more} more")));
            rows.extend(
                listed
                    .enumerate()
                    .map(|(number, one)| vec![if number == 0 { kind.to_owned() } else { String::new() }, one]),
            );
        }
        let table = if rows.is_empty() {
            "It reached nothing besides what every sandbox gives.\n".to_owned()
        } else {
            style::table(&rows, style::terminal_width())
        };
        let proposal = match (&self.after, self.diff()) {
            (_, Some(diff)) => diff,
            (Ok(_), None) => format!("{} says the same already.\n", self.file.display()),
            (Err(_), None) => format!("[tool.{}]\nsandbox = {}\n", self.pack, learned.sandbox.written()),
        };
        style::plain(&format!("{head}{table}\n{proposal}"))
    }

    fn as_json(&self, outcome: &Outcome) -> Value {
        let learned = &self.learned;
        json!({
            "outcome": outcome,
            "reads": learned.reads,
            "writes": learned.writes,
            "network": learned.network,
            "proposal": learned.sandbox.as_toml(),
            "warnings": learned.warnings,
            "unread": learned.unread,
            "file": self.file,
            "diff": self.diff(),
        })
    }

    fn write(&self) -> Result<(), Refusal> {
        let after = self.after.as_ref().map_err(|refused| Refusal::new(&refused.what, &refused.fix))?;
        let failed = |error| Refusal::io(format!("cannot write {}", self.file.display()), error);
        replace_shared(&self.file, after.as_bytes()).map_err(failed)?;
        style::note(&format!(
            "{} is written: the sandbox counts for processes that start from now on",
            self.file.display()
        ));
        Ok(())
    }
}
