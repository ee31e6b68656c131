//! Where the store of a person is.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use postgres::config::{Host, SslMode};
use postgres::{Client, NoTls};
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::StoreError;
use crate::config::{Config, ConfigOptions, Environment};
use crate::journal::place::Place;

/// Where the store of a person is.
#[derive(Clone)]
pub enum StoreAddress {
    /// In a file of its own: SQLite.
    File(PathBuf),
    /// In a PostgreSQL server, which others use as well.
    Server(Box<Server>),
}

/// A PostgreSQL server, and how it is reached.
#[derive(Clone)]
pub struct Server {
    pub(super) config: postgres::Config,
    /// Who uses it: `user@host`. Only their own calls are removed by age and number.
    pub(super) origin: String,
    /// The user: keys are a person's own, on whatever machine.
    pub(super) person: String,
}

impl StoreAddress {
    /// As the person's own settings say: a project does not decide where calls are written to. Settings that cannot be read name none.
    pub fn of(environment: &Arc<Environment>) -> Self {
        let options = ConfigOptions { environment: Arc::clone(environment), ..ConfigOptions::default() };
        let url = Config::of_person(&options).ok().and_then(|config| config.journal.store).map(|store| store.value);
        let server = url.and_then(|url| Server::of(&url, environment));
        server.map_or_else(|| Self::File(Place::of(environment).store()), |server| Self::Server(Box::new(server)))
    }

    /// Whether several machines use it.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Server(_))
    }

    /// Whether there is one, as far as that is known without opening it.
    pub fn may_exist(&self) -> bool {
        match self {
            Self::File(path) => path.exists(),
            Self::Server(_) => true,
        }
    }
}

/// After this long without a word, it is asked whether the server is still there.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(5);

impl Server {
    /// `None` if it is no address of a server.
    fn of(url: &str, environment: &Environment) -> Option<Self> {
        let mut config = url.parse::<postgres::Config>().ok()?;
        if config.get_password().is_none()
            && let Some(password) = environment.text("PGPASSWORD")
        {
            config.password(password);
        }
        let user = environment.text("USER").or(environment.text("LOGNAME")).unwrap_or("somebody");
        if config.get_user().is_none() {
            config.user(environment.text("PGUSER").unwrap_or(user));
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(PATIENCE);
        }
        config.application_name("hostler");
        // A connection that broke silently is noticed.
        config.keepalives_idle(SILENCE).keepalives_interval(PATIENCE).keepalives_retries(3).tcp_user_timeout(SILENCE);
        let host = rustix::system::uname();
        let origin = format!("{user}@{}", host.nodename().to_string_lossy());
        Some(Self { config, origin, person: user.to_owned() })
    }

    /// Connects to it. Where TLS is spoken, its certificate must be one that this machine trusts.
    pub(super) fn connect(&self) -> Result<Client, StoreError> {
        let is_plain = |host: &Host| matches!(host, Host::Unix(_));
        if self.config.get_ssl_mode() == SslMode::Disable || self.config.get_hosts().iter().all(is_plain) {
            return Ok(self.config.connect(NoTls)?);
        }
        let failed = |error: rustls::Error| StoreError::Server(error.to_string());
        let builder = ClientConfig::builder_with_provider(ring::default_provider().into());
        let builder = builder.with_safe_default_protocol_versions().map_err(failed)?;
        let config = builder.with_platform_verifier().map_err(failed)?.with_no_client_auth();
        Ok(self.config.connect(MakeRustlsConnect::new(config))?)
    }

    /// Which server it is, without its password.
    pub fn name(&self) -> String {
        let hosts: Vec<String> = self.config.get_hosts().iter().map(host).collect();
        let database = self.config.get_dbname().or(self.config.get_user()).unwrap_or_default();
        format!("the database {database} on {}", hosts.join(", "))
    }
}

fn host(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    }
}

impl std::fmt::Debug for StoreAddress {
    /// Without the password.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{self}")
    }
}

impl std::fmt::Display for StoreAddress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(formatter),
            Self::Server(server) => formatter.write_str(&server.name()),
        }
    }
}
