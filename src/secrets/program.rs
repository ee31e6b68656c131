//! Secrets that a program prints: the operator's own command, or what asks the keyring of the operating system.

use std::time::Duration;

use super::SecretText;
use super::unreadable::Unreadable;
use crate::config::Environment;
use crate::process::{End, Exit, Finished, Grace, Launch, Once, UsageLimits, limit_behind, once, run};

/// The time limit of a command.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);
/// The time limit of the keyring: a locked one asks the person for its password.
const KEYRING_LIMIT: Duration = Duration::from_mins(1);
/// How long the program may take to leave.
const GRACE: Grace = Grace { to_leave: Duration::ZERO, to_obey: Duration::from_millis(500) };

/// The first line of what a command prints.
pub(super) async fn of_command(words: &[String], environment: &Environment) -> Result<Option<SecretText>, Unreadable> {
    let Some((program, arguments)) = words.split_first() else { return Ok(None) };
    let launch = launch(program, arguments, environment, "install it, or write its whole path")?;
    let done = finished(program, &launch, COMMAND_LIMIT).await?;
    if !done.succeeded() {
        return Err(Unreadable::new(format!("`{program}` {}", end(&done, COMMAND_LIMIT)), "run it by hand to see why"));
    }
    let printed = SecretText::new(done.stdout);
    Ok(printed.lines().next().filter(|line| !line.is_empty()).map(|line| SecretText::new(line.to_owned())))
}

/// An entry of the keyring: the attributes are those that other programs use.
pub(super) async fn of_keyring(
    service: &str,
    account: &str,
    environment: &Environment,
) -> Result<Option<SecretText>, Unreadable> {
    let words: &[&str] = if cfg!(target_os = "macos") {
        &["security", "find-generic-password", "-s", service, "-a", account, "-w"]
    } else {
        &["secret-tool", "lookup", "service", service, "username", account]
    };
    let arguments: Vec<String> = words[1..].iter().map(|word| (*word).to_owned()).collect();
    let launch = launch(words[0], &arguments, environment, INSTALL)?;
    let done = finished(words[0], &launch, KEYRING_LIMIT).await?;
    let said = done.stderr.trim().to_owned();
    // `security` says so with a status of its own, `secret-tool` by saying nothing.
    let is_absent = if cfg!(target_os = "macos") { done.exit == Some(Exit::Code(44)) } else { said.is_empty() };
    if !done.succeeded() {
        let said = said.lines().last().unwrap_or_default();
        return match done.exit {
            Some(Exit::Code(_)) if is_absent => Ok(None),
            Some(Exit::Code(_)) => Err(Unreadable::new(format!("the keyring does not answer: {said}"), NO_KEYRING)),
            _ => Err(Unreadable::new(format!("`{}` {}", words[0], end(&done, KEYRING_LIMIT)), NO_KEYRING)),
        };
    }
    let printed = SecretText::new(done.stdout);
    let value = printed.strip_suffix('\n').unwrap_or(&printed);
    Ok((!value.is_empty()).then(|| SecretText::new(value.to_owned())))
}

const INSTALL: &str = "install it (Debian and Ubuntu: libsecret-tools; Fedora and Arch: libsecret)";
const NO_KEYRING: &str = "unlock the keyring, and start hostler in the session that it belongs to";

/// Stores an entry of the keyring, in place of an earlier one.
pub async fn store_in_keyring(
    name: &str,
    (service, account): (&str, &str),
    value: &str,
    environment: &Environment,
) -> Result<(), Unreadable> {
    if cfg!(target_os = "macos") {
        let fix = format!("run `security add-generic-password -U -s '{service}' -a '{account}' -w`");
        return Err(Unreadable::new("hostler does not write the macOS keychain".to_owned(), fix));
    }
    let label = format!("{name} (hostler)");
    let words = ["store", "--label", &label, "service", service, "username", account].map(str::to_owned);
    let launch = launch("secret-tool", &words, environment, INSTALL)?;
    let input = value.as_bytes().to_vec();
    let program = Once {
        launch,
        input,
        limit: KEYRING_LIMIT,
        most: 4096,
        tail: 4096,
        grace: GRACE,
        limits: UsageLimits::default(),
    };
    let done = once(program, |_, _| {}).await.map_err(|error| Unreadable::new(error.to_string(), NO_KEYRING))?;
    if done.end == End::Exit(Exit::Code(0)) {
        return Ok(());
    }
    let said = done.stderr.lines().last().unwrap_or("it did not end in time");
    Err(Unreadable::new(format!("the keyring does not store it: {said}"), NO_KEYRING))
}

fn launch(program: &str, arguments: &[String], environment: &Environment, install: &str) -> Result<Launch, Unreadable> {
    let absent = || Unreadable::new(format!("`{program}` is not on PATH"), install);
    let path = environment.find_program(program).ok_or_else(absent)?;
    Ok(Launch::new(path)
        .args(arguments)
        .within_that_of(environment)
        // The operator's own command; password managers gain a group to reach their daemon.
        .with_new_privileges(true)
        .envs(environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
}

async fn finished(program: &str, launch: &Launch, limit: Duration) -> Result<Finished, Unreadable> {
    let done = run(launch, limit, |_| {}).await;
    done.map_err(|error| {
        let by_hand = || format!("run `{program}` by hand to see why");
        let fix = limit_behind(&error.source).map_or_else(by_hand, |limit| limit.to_string());
        Unreadable { what: error.to_string(), fix, source: Some(error.source) }
    })
}

fn end(done: &Finished, limit: Duration) -> String {
    match done.exit {
        Some(exit) => format!("ended with {}", exit.behind_launcher()),
        None => format!("took longer than {} s", limit.as_secs()),
    }
}
