//! Runs a program once for one answer: writes and closes its input, reads its output up to a limit, and keeps stderr
//! apart.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use super::child::Child;
use super::exit::Exit;
use super::keeper;
use super::ladder::{Grace, stop};
use super::launch::spawn_when_written;
use super::launch::{Launch, SpawnError};
use super::usage::{CallCount, Excess, UsageLimits, exceeded};

/// A program to run once.
#[derive(Debug)]
pub struct Once {
    /// The program.
    pub launch: Launch,
    /// Its standard input.
    pub input: Vec<u8>,
    /// The time limit.
    pub limit: Duration,
    /// The limit on standard output, in bytes.
    pub most: usize,
    /// How much of the end of standard error to keep, in bytes.
    pub tail: usize,
    /// How to stop it.
    pub grace: Grace,
    /// How much it may use.
    pub limits: UsageLimits,
}

/// An output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Errors,
}

impl Stream {
    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Output => "stdout",
            Self::Errors => "stderr",
        }
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct Done {
    /// How it ended.
    pub end: End,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// The end of its standard error.
    pub stderr: String,
    /// The number of earlier bytes of standard error that were dropped.
    pub unkept: usize,
    /// Its peak memory, in bytes.
    pub peak_memory: Option<usize>,
    /// Its process id.
    pub pid: u32,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, or killed by another process.
    Exit(Exit),
    /// Stopped at the time limit.
    TimeOver,
    /// Stopped because it wrote too much.
    TooMuch,
    /// Stopped because it used more than it may.
    Excess(Excess),
}

/// How much of standard error to keep when it only explains a failure, in bytes.
pub const USUAL_TAIL: usize = 16 * 1024;

/// A longer line of standard error is split.
const LONGEST_LINE: u64 = 16 * 1024;

/// The time to read what an exited program left in its pipes; a surviving child may hold them open.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A process that is stopped with its grace when this is dropped: nobody waits for it any more.
struct Running {
    /// `None` once it has ended.
    child: Option<Child>,
    grace: Grace,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let (Some(mut child), Ok(runtime)) = (self.child.take(), Handle::try_current()) {
            let grace = self.grace;
            // Without a runtime, or when that ends before, the child is killed as it is dropped.
            runtime.spawn(async move { stop(&mut child, grace).await });
        }
    }
}

/// Runs it; `hear` receives each line as soon as it is written. Dropping the future stops the process group.
pub async fn once(once: Once, hear: impl Fn(Stream, &str)) -> Result<Done, SpawnError> {
    let deadline = Instant::now() + once.limit;
    let mut running = Running { child: None, grace: once.grace };
    let child = running.child.insert(spawn_when_written(&once.launch).await?);
    let pid = child.pid();
    // Looked up only where something is limited.
    let root = if once.limits == UsageLimits::default() { pid } else { child.program() };
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut output, mut errors, mut unkept) = (Vec::new(), String::new(), 0);
    let hear = &hear;
    let end = {
        let reading = async {
            tokio::try_join!(
                feed(stdin, &once.input),
                read_output(stdout, once.most, &mut output, |line| hear(Stream::Output, line)),
                async {
                    unkept = read_lines(stderr, once.tail, &mut errors, |line| hear(Stream::Errors, line)).await;
                    Ok(())
                }
            )
        };
        let exceeded = exceeded(root, once.limits, CallCount::of_one(), 1);
        tokio::pin!(reading, exceeded);
        let mut all_is_read = false;
        let end = loop {
            tokio::select! {
                read = &mut reading, if !all_is_read => match read {
                    Ok(_) => all_is_read = true,
                    Err(TooMuch) => break End::TooMuch,
                },
                exit = child.exited() => break End::Exit(exit),
                () = tokio::time::sleep_until(deadline) => break End::TimeOver,
                excess = &mut exceeded => break End::Excess(excess),
            }
        };
        if let End::Exit(_) = end {
            keeper::unless_over().await;
            child.clean_up();
        } else {
            stop(child, once.grace).await;
        }
        if !all_is_read && end != End::TooMuch {
            let left = timeout(LAST_WORDS, &mut reading).await;
            if matches!((left, end), (Ok(Err(TooMuch)), End::Exit(_))) { End::TooMuch } else { end }
        } else {
            end
        }
    };
    let peak_memory = child.peak_memory();
    running.child = None;
    Ok(Done { end, stdout: output, stderr: errors, unkept, peak_memory, pid })
}

/// It exceeded its output limit.
#[derive(Debug)]
struct TooMuch;

/// A program need not read all of its input.
async fn feed(pipe: Option<pipe::Sender>, input: &[u8]) -> Result<(), TooMuch> {
    if let Some(mut pipe) = pipe {
        let _ = pipe.write_all(input).await;
    }
    Ok(())
}

async fn read_output(
    pipe: Option<pipe::Receiver>,
    most: usize,
    into: &mut Vec<u8>,
    hear: impl Fn(&str),
) -> Result<(), TooMuch> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    let mut heard = 0;
    loop {
        match pipe.read_buf(into).await {
            Ok(0) | Err(_) => {
                if heard < into.len() {
                    hear(&String::from_utf8_lossy(&into[heard..]));
                }
                return Ok(());
            }
            Ok(_) if into.len() > most => return Err(TooMuch),
            Ok(_) => {
                // Whole lines only: a piece may end within a character.
                if let Some(end) = into[heard..].iter().rposition(|byte| *byte == b'\n') {
                    hear(&String::from_utf8_lossy(&into[heard..=heard + end]));
                    heard += end + 1;
                }
            }
        }
    }
}

/// Keeps the end, and counts the dropped bytes.
async fn read_lines(pipe: Option<pipe::Receiver>, keep: usize, tail: &mut String, hear: impl Fn(&str)) -> usize {
    let mut unkept = 0;
    let Some(pipe) = pipe else { return unkept };
    let mut reader = BufReader::new(pipe);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut line).await {
        let text = String::from_utf8_lossy(&line);
        hear(&text);
        tail.push_str(&text);
        if tail.len() > 2 * keep {
            let cut = (tail.len() - keep..tail.len()).find(|at| tail.is_char_boundary(*at)).unwrap_or(tail.len());
            tail.drain(..cut);
            unkept += cut;
        }
        line.clear();
    }
    unkept
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn shell(script: &str) -> Once {
        Once {
            launch: Launch::new("/bin/sh").args(["-c", script]),
            input: Vec::new(),
            limit: Duration::from_secs(10),
            most: 1000,
            tail: USUAL_TAIL,
            grace: Grace { to_leave: Duration::ZERO, to_obey: Duration::from_millis(100) },
            limits: UsageLimits::default(),
        }
    }

    #[tokio::test]
    async fn input_output_and_errors_are_kept_apart() {
        let heard = RefCell::new(Vec::new());
        let cat = Once { input: b"hello\nyou".to_vec(), ..shell("cat; exec >&-; echo one >&2; exit 3") };
        let done = once(cat, |stream, line| heard.borrow_mut().push((stream, line.to_owned()))).await.unwrap();
        assert_eq!((done.stdout.as_slice(), done.end), (&b"hello\nyou"[..], End::Exit(Exit::Code(3))));
        assert_eq!(done.stderr, "one\n");
        let of = |wanted: Stream| {
            let heard = heard.borrow();
            heard.iter().filter(|(stream, _)| *stream == wanted).map(|(_, line)| line.as_str()).collect::<String>()
        };
        assert_eq!((of(Stream::Output), of(Stream::Errors)), ("hello\nyou".to_owned(), "one\n".to_owned()));
    }

    #[tokio::test]
    async fn the_end_of_long_errors_is_kept_and_the_rest_counted() {
        let much = Once { tail: 1000, ..shell("i=0; while [ $i -lt 1000 ]; do echo 123456789 >&2; i=$((i+1)); done") };
        let done = once(much, |_, _| {}).await.unwrap();
        assert_eq!(done.unkept + done.stderr.len(), 10_000);
        assert!((1000..=2000).contains(&done.stderr.len()), "{}", done.stderr.len());
    }

    #[tokio::test]
    async fn a_program_may_ignore_its_input_and_close_its_output() {
        let long = vec![b'x'; 5 << 20];
        let done = once(Once { input: long, ..shell("echo 1; exec >&-; exit 0") }, |_, _| {}).await.unwrap();
        assert_eq!((done.stdout.as_slice(), done.end), (&b"1\n"[..], End::Exit(Exit::Code(0))));
    }

    #[tokio::test]
    async fn excess_output_and_excess_time_stop_the_program() {
        let done = once(shell("exec yes"), |_, _| {}).await.unwrap();
        assert_eq!(done.end, End::TooMuch);
        let slow = Once { limit: Duration::from_millis(200), ..shell("trap '' TERM; while :; do sleep 0.01; done") };
        assert_eq!(once(slow, |_, _| {}).await.unwrap().end, End::TimeOver);
    }

    #[tokio::test]
    async fn a_child_that_holds_the_pipe_does_not_block() {
        let began = Instant::now();
        let done = once(shell("echo 7; sleep 60 & echo bye >&2"), |_, _| {}).await.unwrap();
        assert_eq!((done.stdout.as_slice(), done.stderr.as_str()), (&b"7\n"[..], "bye\n"));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}
