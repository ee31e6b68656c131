//! The `hostler` program.

use std::process::ExitCode;

use hostler::Environment;

fn main() -> ExitCode {
    hostler::main(Environment::of_process())
}
