//! The `hostler` program.

use std::process::ExitCode;

use hostler::config::Environment;

fn main() -> ExitCode {
    hostler::cli::main(Environment::of_process())
}
