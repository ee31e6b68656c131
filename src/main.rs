//! The `hostler` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    hostler::cli::main()
}
