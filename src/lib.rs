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
//! [`Hostler::call`] waits for the outcome; dropping its future cancels the call. [`Hostler::start`] returns a
//! [`CallHandle`] with the call's [events](CallHandle::events), its [outcome](CallHandle::outcome) and
//! [`cancel`](CallHandle::cancel); dropping the handle lets the call continue. Every accepted call ends with exactly one
//! [`Outcome`]: a result or a [`Fault`], and who cancelled the call, if someone did. A [`Session`] is one client;
//! [`Hostler::serve_mcp`] serves an MCP client over any stream.
//!
//! # Runtime
//!
//! hostler needs a tokio runtime, preferably a current-thread one: a call passes through several tasks, and moving it
//! between threads costs more than the work. Several [`Hostler`]s in one process share workers through one [`Runtime`].
//!
//! # Processes
//!
//! A killed program cannot clean up. To end its workers even then, start `main` with [`keeper::start`]. From then on, only
//! the main thread can start processes:
//!
//! ```no_run
//! use hostler::keeper;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     keeper::start(keeper::Limits { after_first: None, after_second: None })?;
//!     let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//!     runtime.block_on(async {
//!         hostler::reap_orphans();
//!         // … calls, as above.
//!     });
//!     keeper::finish();
//!     Ok(())
//! }
//! ```

// From top to bottom: each module may import those below it, never those above.
mod cli;
mod hostler;
mod doctor;
mod shared;
mod http;
mod control;
mod runtime;
mod mcp;
mod call;
mod approvals;
mod audit;
mod rates;
mod journal;
mod executor;
pub mod builtin;
mod pool;
mod worker;
mod environment;
mod check;
mod registry;
mod discovery;
mod secrets;
mod process;
mod egress;
mod protocol;
mod outcome;
mod pep723;
mod policy;
mod threads;
mod words;
mod config;
mod telemetry;

pub use self::hostler::{Hostler, HostlerBuilder, OpenError, ToolInfo};
pub use call::{
    Answer, Arguments, Asking, CallContext, CallCounts, CallEvent, CallHandle, CallRequest, Caller, ClientError,
    ClientFeatures, Elicitation, Elicited, Feature, Layer, LayerFuture, LlmImage, LlmMessage, LlmRequest, LlmRole,
    Next, Root, Session, SessionId,
};
pub use config::tool::Effects;
pub use config::{Config, ConfigError, ConfigOptions, Environment};
pub use outcome::{Cancelled, Canceller, Code, Details, Fault, Metadata, Outcome};
pub use pool::{Listener, NoopListener, Settled};
pub use process::keeper;
pub use protocol::{ProgressNote, TraceContext};
pub use registry::Watching;
pub use runtime::Runtime;
pub use worker::LogLine;

/// Kills what tools leave behind together with their workers, and what killed runs of hostler left behind now. For programs
/// with a [keeper]; call it on the main thread's tokio runtime.
pub fn reap_orphans() {
    runtime::Workspace::tidy();
}

/// The `hostler` program, for its `main`.
#[doc(hidden)]
pub fn main(environment: Environment) -> std::process::ExitCode {
    cli::main(environment)
}

/// What benches and fuzz targets reach inside hostler.
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench {
    use std::sync::Arc;

    pub use crate::call::{EventFilter, EventKind, Watch, record_ends, validate_arguments};
    pub use crate::discovery::read_bytes;
    #[cfg(target_os = "linux")]
    pub use crate::egress::bench::Proxying;
    pub use crate::journal::bench::{leave, recovery};
    pub use crate::pep723::{blocks, decode, read as read_header};
    pub use crate::policy::{bench::Deciding, commands};
    pub use crate::protocol::{CallFrame, Hello, Incoming, parse as parse_frame, peek_id};
    pub use crate::registry::{Registry, Tool};
    pub use crate::secrets::bench::Redacting;
    pub use crate::telemetry::{flush_spans, span_counts};

    /// What is seen of the calls of a runtime.
    pub fn watch(runtime: &crate::Runtime) -> Arc<Watch> {
        Arc::clone(&runtime.watch)
    }
}
