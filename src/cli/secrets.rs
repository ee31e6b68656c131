//! `hostler secrets`: which secrets tools need, storing them, and trying them. A value is never printed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde_json::{Value, json};

use super::options::{SecretArgs, SecretsOf};
use super::style::{self, Refusal};
use crate::config::Config;
use crate::config::secrets::SecretSource;
use crate::process::{is_below_hostler, is_marked};
use crate::runtime::Workspace;
use crate::secrets::{Place, SecretText, named_itself, refresh, store, store_in_keyring, why_missing};
use crate::threads::blocking;

/// The exit status if a secret is not set or cannot be read.
const MISSING: u8 = 1;
/// The longest secret that is stored, in bytes.
const LONGEST: u64 = 64 << 10;

pub(super) async fn run(app: &Workspace, args: &SecretArgs) -> Result<ExitCode, Refusal> {
    match &args.what {
        SecretsOf::List => list(&needed(app).await, &app.config(), args.json),
        // The terminal shows what is typed again, also after an interrupt.
        SecretsOf::Set { name } => return style::unless_interrupted(set(app, name, args.json)).await,
        SecretsOf::Test { names } => return test(app, names, args.json).await,
        SecretsOf::Refresh => {
            let environment = &app.config().environment;
            refresh(environment).map_err(|error| Refusal::io("cannot ask for new values", error))?;
            style::note("every running hostler reads its secrets again at the next call");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Every secret that is declared or configured, with the packs that declare it.
async fn needed(app: &Workspace) -> BTreeMap<String, BTreeSet<String>> {
    app.calls.registry.asked().await;
    let mut needed = app.calls.registry.catalogue().declared_secrets();
    for name in app.config().secrets.keys() {
        needed.entry(name.clone()).or_default();
    }
    needed
}

fn list(needed: &BTreeMap<String, BTreeSet<String>>, config: &Config, is_json: bool) {
    if is_json {
        let row = |(name, packs): (&String, &BTreeSet<String>)| {
            let place = Place(name, config);
            let line = config.secrets.get(name).map(|setting| setting.origin.to_string());
            json!({"name": name, "from": place.kind(), "place": place.to_string(), "origin": line, "declared_by": packs})
        };
        return style::answer_json(&needed.iter().map(row).collect::<Vec<Value>>());
    }
    if needed.is_empty() {
        return style::note("no tool declares a secret");
    }
    let head = ["SECRET", "FROM", "DECLARED BY"].map(str::to_owned).to_vec();
    let rows = needed.iter().map(|(name, packs)| {
        let packs = packs.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let packs = if packs.is_empty() { "no tool".to_owned() } else { packs };
        vec![style::plain(name), style::plain(&Place(name, config).to_string()), style::plain(&packs)]
    });
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    style::answer(&style::table(&rows, style::terminal_width()));
}

/// How reading a secret went.
struct Tried {
    name: String,
    problem: Option<(String, String)>,
    took_ms: u128,
}

async fn test(app: &Workspace, names: &[String], is_json: bool) -> Result<ExitCode, Refusal> {
    let (needed, config) = (needed(app).await, app.config());
    let names: Vec<&String> = if names.is_empty() { needed.keys().collect() } else { names.iter().collect() };
    let mut tried = Vec::new();
    for name in names {
        let began = Instant::now();
        let problem = match app.calls.pools.secret(name).await {
            Ok(Some(value)) => named_itself(name, &value),
            Ok(None) => Some(("is not set".to_owned(), why_missing(name, &config))),
            Err(error) => Some((error.what, error.fix)),
        };
        tried.push(Tried { name: name.clone(), problem, took_ms: began.elapsed().as_millis() });
    }
    let is_whole = tried.iter().all(|one| one.problem.is_none());
    if is_json {
        let row = |one: &Tried| {
            let (what, fix) = one.problem.as_ref().map(|(what, fix)| (what, fix)).unzip();
            json!({"name": one.name, "ok": what.is_none(), "problem": what, "fix": fix, "ms": one.took_ms})
        };
        style::answer_json(&tried.iter().map(row).collect::<Vec<Value>>());
    } else {
        for Tried { name, problem, took_ms } in &tried {
            let name = style::plain(name);
            match problem {
                None => style::answer(&format!("ok    {name}  {} ({took_ms} ms)\n", Place(&name, &config))),
                Some((what, fix)) => {
                    style::answer(&format!("bad   {name}  {}\n      → {}\n", style::plain(what), style::plain(fix)));
                }
            }
        }
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(MISSING) })
}

/// Where a secret is stored.
enum Target {
    File(PathBuf),
    Keyring(String, String),
}

async fn set(app: &Workspace, name: &str, is_json: bool) -> Result<(), Refusal> {
    let config = app.config();
    if is_marked(&config.environment) || is_below_hostler() {
        return Err(Refusal::new("a tool may not store secrets", "store it from a terminal that no tool has started"));
    }
    let target = target(name, &config)?;
    let value = typed(name).await?;
    if let Some((what, fix)) = named_itself(name, &value) {
        return Err(Refusal::new(what, fix));
    }
    match &target {
        Target::File(path) => {
            store(path, &value).map_err(|error| Refusal::io(format!("cannot write {}", path.display()), error))?;
        }
        Target::Keyring(service, account) => {
            let stored = store_in_keyring(name, (service, account), &value, &config.environment).await;
            stored.map_err(|error| Refusal::new(error.what, error.fix))?;
        }
    }
    let place = Place(name, &config).to_string();
    let _ = refresh(&config.environment);
    if config.environment.text(name).is_some() && !config.secrets.contains_key(name) {
        style::warn(&format!("the variable {name} is set here, and counts over what is stored"));
    }
    let needed = needed(app).await;
    if needed.get(name).is_none_or(BTreeSet::is_empty) {
        style::warn(&format!("no tool here declares {name}"));
    }
    if is_json {
        style::answer_json(&json!({"name": name, "place": place}));
    } else {
        style::note(&format!("{name} is stored ({place}); the next call reads it"));
    }
    Ok(())
}

fn target(name: &str, config: &Config) -> Result<Target, Refusal> {
    let elsewhere = |what: &str| {
        let message = format!("[secrets] in hostler.toml reads {name} from {what}");
        Err(Refusal::new(message, "store it there, or remove the line from [secrets]"))
    };
    match config.secrets.get(name).map(|setting| &setting.value) {
        None => match config.stored_secret(name) {
            Some(path) => Ok(Target::File(path)),
            None => Err(Refusal::new(
                format!("{name:?} is not a name that a secret is stored under"),
                "use letters, digits, `_`, `-` and `.`",
            )),
        },
        Some(SecretSource::File(path)) => Ok(Target::File(path.clone())),
        Some(SecretSource::Keyring { service, account, .. }) => Ok(Target::Keyring(service.clone(), account.clone())),
        Some(SecretSource::Environment(variable)) => elsewhere(&format!("the variable {variable}")),
        Some(SecretSource::Command { words, .. }) => elsewhere(&format!("the command `{}`", words.join(" "))),
        Some(SecretSource::Systemd(credential)) => elsewhere(&format!("the credential {credential} of systemd")),
    }
}

/// The secret from a terminal, where it is not shown, or whole from a pipe.
async fn typed(name: &str) -> Result<SecretText, Refusal> {
    let cannot = |error| Refusal::system("cannot read the secret", error);
    let is_terminal = std::io::stdin().is_terminal();
    let hidden = if is_terminal { Some(Hidden::now().map_err(cannot)?) } else { None };
    if is_terminal {
        style::talk(&format!("{name}: "));
    }
    // On a thread, so that signals are handled meanwhile.
    let reading = blocking(move || {
        let mut text = SecretText::default();
        let stdin = std::io::stdin().lock();
        let read = if is_terminal {
            std::io::BufRead::read_line(&mut stdin.take(LONGEST + 1), &mut text)
        } else {
            stdin.take(LONGEST + 1).read_to_string(&mut text)
        };
        read.map(|_| text)
    });
    let mut text = reading.map_err(cannot)?.await.map_err(cannot)?;
    drop(hidden);
    if is_terminal {
        style::talk("\n");
    }
    let length = text.trim_end_matches(['\n', '\r']).len();
    text.truncate(length);
    if text.is_empty() {
        return Err(Refusal::new("no secret was given", "type it, or pass it on standard input"));
    }
    if u64::try_from(text.len()).is_ok_and(|length| length > LONGEST) {
        return Err(Refusal::new("the secret is longer than 64 KiB", "name its file under [secrets] in hostler.toml"));
    }
    Ok(text)
}

/// A terminal that does not show what is typed, until this is dropped.
struct Hidden(rustix::termios::Termios);

impl Hidden {
    fn now() -> std::io::Result<Self> {
        let usual = tcgetattr(std::io::stdin())?;
        let mut quiet = usual.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &quiet)?;
        Ok(Self(usual))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}
