//! The records of a spool: what is written down of calls. How they are written says `codec`.

/// A call's id, as bytes.
pub type Id = [u8; 16];

/// The id of a call as bytes. One that hostler did not make has none of its own.
pub fn id_of(written: &str) -> Id {
    let bytes = data_encoding::HEXLOWER.decode(written.as_bytes()).unwrap_or_default();
    bytes.try_into().unwrap_or_default()
}

/// What is written down.
#[derive(Debug, Clone, PartialEq)]
pub enum Record<'a> {
    /// A call was accepted.
    Accepted(Accepted<'a>),
    /// It goes to its worker, process or task.
    Dispatched(Dispatched),
    /// It has its outcome.
    Finished(Finished<'a>),
    /// Its last attempt failed, and it will be tried again.
    Retrying(Retrying<'a>),
    /// Somebody asked for its end.
    Cancelling(Cancelling<'a>),
    /// It has printed something.
    Printed(Printed<'a>),
    /// It goes on without its client from now on.
    Detached(Detached<'a>),
    /// A person is asked whether it may run.
    Waiting(Waiting),
}

/// A call was accepted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Accepted<'a> {
    pub id: Id,
    /// When, in milliseconds since 1970, as all times here.
    pub at_ms: u64,
    pub tool: &'a str,
    /// The version of its tool file: a hash.
    pub version: &'a [u8],
    /// As JSON. Empty if they are not kept.
    pub arguments: &'a str,
    pub effects: &'a str,
    pub level: &'a str,
    /// It goes on without its client.
    pub background: bool,
    /// The number of its session.
    pub session: u64,
    pub client: Option<&'a str>,
    pub tags: Vec<&'a str>,
    pub traceparent: Option<&'a str>,
    pub key: Option<&'a str>,
    pub timeout_ms: u64,
    pub max_retries: u64,
    /// Where it can be run again: JSON of folder, configuration and tools.
    pub workspace: Option<&'a str>,
    /// Its tool declares secrets, which its arguments may hold.
    pub has_secrets: bool,
}

/// A call goes to its worker.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Dispatched {
    pub id: Id,
    pub at_ms: u64,
    pub attempt: u64,
    /// The process that runs it; 0 if it is not known or runs within hostler.
    pub pid: u64,
    /// When that was started, in clock ticks since boot.
    pub process_started: u64,
}

/// A call has its outcome.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Finished<'a> {
    pub id: Id,
    pub at_ms: u64,
    pub state: &'a str,
    /// The code of its fault.
    pub code: Option<&'a str>,
    /// The fault as JSON, without secrets.
    pub fault: Option<&'a str>,
    /// The result as JSON, where it is kept.
    pub result: Option<&'a str>,
    /// The arguments as JSON without secrets, where they are kept.
    pub arguments: Option<&'a str>,
    /// The end of its output.
    pub output: Option<&'a str>,
    pub duration_us: u64,
    pub attempt: u64,
    pub pid: u64,
    /// Who ended it, if it was cancelled.
    pub cancelled: Option<&'a str>,
    /// Where its time went, as JSON.
    pub metadata: Option<&'a str>,
    /// The arguments with which it was accepted are kept: no secret can be among them.
    pub keeps_arguments: bool,
    /// Where it could be run again, if it was not said when it was accepted.
    pub workspace: Option<&'a str>,
}

/// A call will be tried again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Retrying<'a> {
    pub id: Id,
    pub at_ms: u64,
    /// Which retry it will be, from 1.
    pub retry: u64,
    /// When that begins.
    pub retry_at_ms: u64,
    /// Why the attempt failed, as JSON of an [`Attempt`](crate::outcome::Attempt) without secrets.
    pub fault: &'a str,
}

/// Somebody asked for the end of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cancelling<'a> {
    pub id: Id,
    pub at_ms: u64,
    pub by: &'a str,
}

/// A call has printed something.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Printed<'a> {
    pub id: Id,
    pub at_ms: u64,
    pub stream: &'a str,
    pub text: &'a str,
}

/// A call goes on without its client.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Detached<'a> {
    pub id: Id,
    pub at_ms: u64,
    /// Where it can be run again.
    pub workspace: Option<&'a str>,
}

/// A person is asked whether a call may run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Waiting {
    pub id: Id,
    pub at_ms: u64,
}

impl Record<'_> {
    /// The call that it is about.
    pub fn id(&self) -> Id {
        match self {
            Self::Accepted(one) => one.id,
            Self::Dispatched(one) => one.id,
            Self::Finished(one) => one.id,
            Self::Retrying(one) => one.id,
            Self::Cancelling(one) => one.id,
            Self::Printed(one) => one.id,
            Self::Detached(one) => one.id,
            Self::Waiting(one) => one.id,
        }
    }
}
