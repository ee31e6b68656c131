//! Which processes live, as they show it in the server.

use postgres::{GenericClient, Transaction};

use super::super::StoreError;

/// Shows that the process of a spool lives.
pub fn show(client: &mut impl GenericClient, spool: &str) -> Result<(), StoreError> {
    client.execute(
        "INSERT INTO hostler.spools (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET heartbeat = clock_timestamp()",
        &[&spool],
    )?;
    Ok(())
}

/// Whether the process of a spool has shown itself lately.
pub fn has_lease(transaction: &mut Transaction<'_>, spool: &str, lease: f64) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT FROM hostler.spools
               WHERE name = $1 AND heartbeat > clock_timestamp() - make_interval(secs => $2))";
    Ok(transaction.query_one(sql, &[&spool, &lease])?.get(0))
}

/// The same, and it does not show itself until the transaction is over.
pub fn is_held(transaction: &mut Transaction<'_>, spool: &str, lease: f64) -> Result<bool, StoreError> {
    transaction.execute("SELECT FROM hostler.spools WHERE name = $1 FOR UPDATE", &[&spool])?;
    has_lease(transaction, spool, lease)
}
