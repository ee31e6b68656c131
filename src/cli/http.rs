//! `hostler serve --http`, HTTP beside another face, and the tokens of both.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::task::JoinHandle;

use super::options::{HttpAddress, Token};
use super::style::{self, Refusal};
use crate::config::Environment;
use crate::control::{About, Control};
use crate::http::{Face, Given, Listener, token as token_of};
use crate::process::keep_trimmed;
use crate::runtime::Workspace;
use crate::shared::build;
use crate::words::plural;

/// The session of HTTP clients, in a process without numbered ones. 1 is that of its standard input.
const NUMBER: u64 = 2;
/// Where `--http` without an address listens, if the configuration does not say.
const USUAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7411);

/// The control face of this process.
pub(super) fn control_of(app: &Workspace) -> Result<Arc<Control>, Refusal> {
    let build = build().map_err(|error| Refusal::system("cannot start", error))?;
    Ok(Control::new(Arc::clone(app.runtime()), About { build, key: None, log: None }))
}

fn face(app: &Workspace, control: &Arc<Control>) -> Arc<Face> {
    let given = Given { service: Arc::clone(&app.calls), number: app.session.unwrap_or(NUMBER) };
    Face::new(Arc::clone(control), Box::new(given))
}

/// Serves HTTP beside what this process serves, if its configuration says where.
pub(super) fn beside(app: &Workspace, control: &Arc<Control>) -> Option<JoinHandle<()>> {
    let config = app.config();
    let address = config.control.listen.as_ref()?.value;
    let face = face(app, control);
    Some(tokio::spawn(async move {
        let listener = Listener::once_free(address, &config.environment).await;
        listener.serve(face, config.control.origins.clone()).await;
    }))
}

/// `hostler serve --http`
pub(super) async fn serve(app: &Workspace, asked: HttpAddress) -> Result<ExitCode, Refusal> {
    let signals = style::signals()?;
    if let Some(remedy) = app.calls.registry.catalogue().remedy() {
        style::warn(&format!("no tools found: {remedy}"));
    }
    app.calls.registry.introduce();
    super::status::on_signal(&app.calls);
    let config = app.config();
    let address = match asked {
        HttpAddress::At(address) => address,
        HttpAddress::Usual => config.control.listen.as_ref().map_or(USUAL, |listen| listen.value),
    };
    let listener = Listener::at(address, &config.environment).await;
    let listener = listener.map_err(|error| {
        let fix = "end what listens there, or name another port with `--http 127.0.0.1:PORT`";
        Refusal { status: style::SYSTEM, ..Refusal::new(error.to_string(), fix) }
    })?;
    let control = control_of(app)?;
    app.runtime().recover();
    let watching = app.watch();
    let calls = Arc::clone(&app.calls);
    let trimming = tokio::spawn(keep_trimmed(move || Arc::clone(&calls).next_end()));
    let address = listener.address();
    let tools = app.calls.registry.catalogue().ready().count();
    let are = if tools == 1 { "is" } else { "are" };
    style::note(&format!("{} {are} served at http://{address}", plural(tools, "tool")));
    style::note("requests need a token: `hostler token` prints it");
    let ending = async {
        tokio::select! {
            _ = signals.first() => {}
            _ = control.wished() => {}
        }
        // Running calls have a moment, or until a second signal.
        control.close();
        signals.second().await;
    };
    tokio::select! {
        () = listener.serve(face(app, &control), config.control.origins.clone()) => {}
        () = ending => {}
    }
    trimming.abort();
    drop(watching);
    app.calls.registry.saved();
    app.close_hearing(&signals).await;
    app.runtime().end_journal().await;
    Ok(ExitCode::SUCCESS)
}

/// `hostler token`
pub(super) fn token(args: &Token, environment: &Environment) -> Result<ExitCode, Refusal> {
    let token = token_of(environment, args.scope, args.renew);
    style::answer(&token.map_err(|error| Refusal { status: style::SYSTEM, ..Refusal::new(error.to_string(), "") })?);
    Ok(ExitCode::SUCCESS)
}
