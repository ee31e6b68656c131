//! The floor: a process that does nothing but copy lines between a client and a worker, both ways, as the best of bare
//! supervisors would. It is this program again, run with an argument.

use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, ExitCode, Stdio};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::unix::pipe;

use crate::Fallible;

/// The argument that makes this program a relay; the worker's command follows.
pub const ARGUMENT: &str = "--relay-to";

/// Is this process to be a relay? Then it is one, and this is how it ended.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() != Some(ARGUMENT) {
        return None;
    }
    let command: Vec<String> = words.collect();
    Some(match relay(&command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("relay: {error}");
            ExitCode::FAILURE
        }
    })
}

fn relay(command: &[String]) -> Fallible<()> {
    let (program, arguments) = command.split_first().ok_or("no worker to relay to")?;
    let mut worker = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let its_input: OwnedFd = worker.stdin.take().ok_or("no standard input")?.into();
    let its_output: OwnedFd = worker.stdout.take().ok_or("no standard output")?.into();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let from_client = pipe::Receiver::from_owned_fd(std::io::stdin().as_fd().try_clone_to_owned()?)?;
        let to_client = pipe::Sender::from_owned_fd(std::io::stdout().as_fd().try_clone_to_owned()?)?;
        let asking = tokio::spawn(copy_lines(from_client, pipe::Sender::from_owned_fd(its_input)?));
        copy_lines(pipe::Receiver::from_owned_fd(its_output)?, to_client).await?;
        asking.abort();
        Ok::<(), std::io::Error>(())
    })?;
    worker.wait()?;
    Ok(())
}

/// Copies until the end, whole lines at a time.
async fn copy_lines(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> std::io::Result<()> {
    let mut buffer = Vec::with_capacity(64 * 1024);
    while from.read_buf(&mut buffer).await? > 0 {
        if let Some(end) = buffer.iter().rposition(|byte| *byte == b'\n') {
            to.write_all(&buffer[..=end]).await?;
            buffer.drain(..=end);
        }
    }
    Ok(())
}
