//! hostler supervises the tools that AI agents call.
//!
//! The modules stand in floor order: each may import those below it, never those above.

pub mod cli;
pub mod app;
pub mod mcp;
pub mod dispatch;
pub mod executor;
pub mod pool;
pub mod worker;
pub mod environment;
pub mod registry;
pub mod discovery;
pub mod process;
pub mod protocol;
pub mod outcome;
pub mod pep723;
pub mod config;
pub mod telemetry;
