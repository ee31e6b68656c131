//! hostler supervises the tools that AI agents call: folders of plain Python files and executables, kept warm in isolated
//! worker processes, and tools in Rust beside them.
//!
//! ```no_run
//! use hostler::{CallRequest, Hostler};
//! use serde_json::{Map, json};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let hostler = Hostler::builder().tools("examples/tools").open()?;
//! let arguments = Map::from_iter([("text".to_owned(), json!("Hello there"))]);
//! let outcome = hostler.call(CallRequest::new("text.slug", arguments)).await;
//! match &outcome.ended {
//!     Ok(result) => println!("{result}"),
//!     Err(fault) => eprintln!("{}: {}", fault.code, fault.message),
//! }
//! hostler.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Calls
//!
//! [`Hostler::call`] waits, and cancels the call when its future is dropped. [`Hostler::start`] gives a [`CallHandle`]:
//! its [events](CallHandle::events), its [outcome](CallHandle::outcome), [`CallHandle::cancel`]; dropping it lets the call
//! go on. Every accepted call ends with an [`Outcome`], recorded once, that says what it returned or which [`Fault`] it met,
//! and who cancelled it. A [`Session`] is a client of its own; [`Hostler::serve_mcp`] serves one over any stream.
//!
//! # Runtime
//!
//! hostler wants a tokio runtime, best one of a single thread: a call passes through several tasks, and handing it between
//! threads costs more than the work. Several [`Hostler`]s in one process share workers through one [`Runtime`].
//!
//! # Processes
//!
//! A program that is killed cannot clean up. One whose workers must go even then begins its `main` with
//! [`keeper::start`]. From there on only its main thread can start processes:
//!
//! ```no_run
//! use hostler::keeper;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     keeper::start(keeper::Limits { after_first: None, after_second: None })?;
//!     let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//!     runtime.block_on(async {
//!         hostler::reap_orphans();
//!         // … and calls, as above.
//!     });
//!     keeper::finish();
//!     Ok(())
//! }
//! ```

// In floor order: each may import those below it, never those above.
mod cli;
mod hostler;
mod doctor;
mod runtime;
mod mcp;
mod call;
mod executor;
pub mod builtin;
mod pool;
mod worker;
mod environment;
mod check;
mod registry;
mod discovery;
mod process;
mod protocol;
mod outcome;
mod pep723;
mod config;
mod telemetry;

pub use self::hostler::{Hostler, HostlerBuilder, OpenError, ToolInfo};
pub use call::{
    Answer, Arguments, CallContext, CallCounts, CallEvent, CallHandle, CallRequest, Caller, Layer, LayerFuture, Llm,
    LlmMessage, LlmRequest, LlmRole, Next, Session, SessionId,
};
pub use config::tool::Effects;
pub use config::{Config, ConfigError, ConfigOptions, Environment};
pub use outcome::{Cancelled, Canceller, Code, Details, Fault, Metadata, Outcome};
pub use pool::{Listener, NoopListener, Settled};
pub use process::keeper;
pub use protocol::ProgressNote;
pub use registry::Watching;
pub use runtime::Runtime;
pub use worker::LogLine;

/// Ends what tools leave behind: with their workers while hostler runs, and now what killed runs of hostler left. For programs
/// with a [keeper]; to be called on the main thread's tokio runtime.
pub fn reap_orphans() {
    runtime::Workspace::tidy();
}

/// The `hostler` program, for its `main`.
#[doc(hidden)]
pub fn main(environment: Environment) -> std::process::ExitCode {
    cli::main(environment)
}

/// What the benches measure inside hostler.
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench {
    pub use crate::call::validate_arguments;
    pub use crate::protocol::{CallFrame, Hello};
    pub use crate::registry::{Registry, Tool};
}
