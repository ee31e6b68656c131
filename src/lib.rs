//! hostler supervises the tools that AI agents call.
//!
//! The program is a thin skin over this library; a call from inside another program looks like this:
//!
//! ```no_run
//! use std::path::Path;
//!
//! use hostler::{app::App, config::Wanted, dispatch::CallRequest};
//! use serde_json::{Map, json};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let wanted = Wanted { tools: vec!["examples/tools".into()], ..Wanted::default() };
//! let hostler = App::open(&wanted, Path::new("."))?;
//! let arguments = Map::from_iter([("text".to_owned(), json!("Hello there"))]);
//! let outcome = hostler.dispatcher.call(CallRequest::new("text.slug", arguments)).await;
//! println!("{}", serde_json::to_string_pretty(&outcome)?);
//! hostler.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! It wants a tokio runtime, best one of a single thread: a call passes through several tasks, and handing it between
//! threads costs more than the work.
//!
//! A program that is killed cannot clean up. One that wants nobody left even then begins its `main` with
//! [`process::keeper::start`], which says what there is without.
//!
//! The modules stand in floor order: each may import those below it, never those above.

pub mod cli;
pub mod doctor;
pub mod app;
pub mod mcp;
pub mod dispatch;
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
