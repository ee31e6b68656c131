//! hostler supervises the tools that AI agents call.
//!
//! The program is a thin skin over this library; a call from inside another program looks like this:
//!
//! ```no_run
//! use std::path::Path;
//!
//! use hostler::{runtime::Workspace, config::ConfigOptions, call::CallRequest};
//! use serde_json::{Map, json};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let wanted = ConfigOptions { tools: vec!["examples/tools".into()], ..ConfigOptions::default() };
//! let hostler = Workspace::open(&wanted, Path::new("."))?;
//! let arguments = Map::from_iter([("text".to_owned(), json!("Hello there"))]);
//! let outcome = hostler.calls.call(CallRequest::new("text.slug", arguments)).await;
//! println!("{}", serde_json::to_string_pretty(&outcome)?);
//! hostler.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! It wants a tokio runtime, best one of a single thread: a call passes through several tasks, and handing it between
//! threads costs more than the work.
//!
//! Python files are read and answer at once. Executables have to be asked what they are: [`Workspace::ask`](runtime::Workspace::ask) has that
//! done, and without it they have no tools. [`Workspace::watch`](runtime::Workspace::watch) tells of changes while nobody calls.
//! [`Workspace::close`](runtime::Workspace::close) ends the workers; one that is only dropped leaves them to the end of the runtime.
//!
//! A program that is killed cannot clean up. One that wants nobody left even then begins its `main` with
//! [`process::keeper::start`], which says what there is without. From there on only its main thread can start processes:
//!
//! ```no_run
//! use hostler::{runtime::Workspace, process::keeper};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     keeper::start(keeper::Limits { after_first: None, after_second: None })?;
//!     let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//!     runtime.block_on(async {
//!         Workspace::tidy();
//!         // … and calls, as above.
//!     });
//!     keeper::finish();
//!     Ok(())
//! }
//! ```
//!
//! The modules stand in floor order: each may import those below it, never those above.

pub mod cli;
pub mod doctor;
pub mod runtime;
pub mod mcp;
pub mod call;
pub mod executor;
pub mod builtin;
pub mod pool;
pub mod worker;
pub mod environment;
pub mod check;
pub mod registry;
pub mod discovery;
pub mod process;
pub mod protocol;
pub mod outcome;
pub mod pep723;
pub mod config;
pub mod telemetry;
