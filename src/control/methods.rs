//! Every method, entered into a table.

use std::sync::Arc;

use jsonrpsee::Methods;
use jsonrpsee::core::RegisterMethodError;

use super::client::Client;
use super::table::{Server, Table};
use super::{approvals, calls, document, events, itself, mode, pools, run, sessions, tools};

/// Enters all of them.
pub(super) fn enter(table: &mut impl Table) {
    itself::enter(table);
    sessions::enter(table);
    tools::enter(table);
    run::enter(table);
    calls::enter(table);
    approvals::enter(table);
    mode::enter(table);
    events::enter(table);
    pools::enter(table);
    document::enter(table);
}

/// The methods that answer a client.
pub(super) fn methods_of(client: &Arc<Client>) -> Result<Methods, RegisterMethodError> {
    let mut server = Server::of(client);
    enter(&mut server);
    match server.broken {
        Some(error) => Err(error),
        None => Ok(server.module.into()),
    }
}
