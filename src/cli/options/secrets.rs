//! The options of `hostler secrets`.

use clap::{Args, Subcommand};

/// `hostler secrets`
#[derive(Debug, Args)]
pub(in crate::cli) struct SecretArgs {
    #[command(subcommand)]
    pub what: SecretsOf,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// What `hostler secrets` does.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum SecretsOf {
    /// List the secrets that tools declare and that hostler.toml names, without reading them
    List,
    /// Store a secret, which is typed without being shown or comes from standard input
    Set {
        /// Its name, as tools declare it
        name: String,
    },
    /// Read secrets as a call would; exit status 1 if one is not set or cannot be read
    Test {
        /// Their names; all without one
        names: Vec<String>,
    },
    /// Let every running hostler read secrets again whose values are kept for a `cache` time
    Refresh,
}
