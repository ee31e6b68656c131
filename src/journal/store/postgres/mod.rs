//! The store in a PostgreSQL server, for several machines.
//!
//! The spool stays in front of it: calls of the foreground are brought later, and a server that is away costs nothing but lateness. What
//! others must be able to rely on, background calls and those with a key, is there before it begins.
//!
//! Who uses it is known by leases: a spool whose process has not shown itself for its lease is taken for gone. The server's clock counts,
//! and only who has been connected for as long takes calls of others: after a pause of the server, everybody shows itself first.

mod leases;
mod rows;
mod schema;

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use postgres::fallible_iterator::FallibleIterator;
use postgres::types::ToSql;
use postgres::{Client, GenericClient};

use self::leases::{has_lease, is_held, show};
use self::rows::{Writer, apply, clean, row};
use super::address::Server;
use super::rows::{COLUMNS, LISTED, number};
use super::{AT_ONCE, Batch, CallRow, Change, IS_OPEN, IS_OVER, RowFilter, Store, StoreError};
use crate::journal::keys::{Claimed, Keyed, REMEMBERED_MS};
use crate::journal::place::Left;
use crate::journal::recover::ToRun;
use crate::journal::retention::{Excess, Held};
use crate::journal::spool::Position;

/// How long a server may take to say that it is there.
const ANSWER: Duration = Duration::from_secs(1);

/// What another one holds for longer is tried again later.
const LIMITS: &str = "SET lock_timeout = '5s'; SET statement_timeout = '1min'";

/// Calls that may go: they have ended, and no idempotency key names them any more.
fn may_go() -> String {
    format!("origin = $1 AND {IS_OVER} AND NOT (key IS NOT NULL AND created_at >= $2)")
}

/// The channels on which the server says which tool a call was enqueued of, and which call has ended that others may wait for.
pub const ENQUEUED: &str = "hostler_enqueued";
pub const ENDED: &str = "hostler_ended";

/// The store in a server.
pub struct PostgresStore {
    client: Connection,
    origin: String,
    /// Whose keys it takes.
    person: String,
    connected: Instant,
    /// After this long without a sign of life, the calls of a process may be taken by another.
    lease: Duration,
}

impl PostgresStore {
    /// Connects, and makes the tables or brings them up to date.
    pub fn open(server: &Server) -> Result<Self, StoreError> {
        let mut client = Connection(Some(server.connect()?));
        schema::prepare(client.client()?)?;
        let lease = schema::lease(client.client()?)?;
        client.client()?.batch_execute(LIMITS)?;
        Ok(Self {
            client,
            origin: server.origin.clone(),
            person: server.person.clone(),
            connected: Instant::now(),
            lease,
        })
    }

    /// Calls `heard` with what is said on a channel, and with nothing at first, since something may have been said before, and after
    /// each `pause`; until it returns false.
    pub fn listen(
        &mut self,
        channel: &str,
        pause: Duration,
        mut heard: impl FnMut(Option<&str>) -> bool,
    ) -> Result<(), StoreError> {
        let client = self.client.client()?;
        client.batch_execute(&format!("LISTEN {channel}"))?;
        let mut said = None;
        while heard(said.as_deref()) {
            if client.is_closed() {
                return Err(StoreError::Server("the connection has ended".to_owned()));
            }
            said = client.notifications().timeout_iter(pause).next()?.map(|said| said.payload().to_owned());
        }
        Ok(())
    }

    /// Whether the server answers.
    pub fn answers(&mut self) -> bool {
        self.client.client().is_ok_and(|client| client.is_valid(ANSWER).is_ok())
    }

    fn lease(&self) -> f64 {
        self.lease.as_secs_f64()
    }
}

/// A connection. It says farewell to the server when it is dropped, which cannot be done from within a runtime.
struct Connection(Option<Client>);

impl Connection {
    fn client(&mut self) -> Result<&mut Client, StoreError> {
        self.0.as_mut().ok_or_else(|| StoreError::Server("the connection has ended".to_owned()))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let client = self.0.take();
        if tokio::runtime::Handle::try_current().is_ok() {
            std::thread::scope(|scope| drop(scope.spawn(|| drop(client)).join()));
        }
    }
}

fn open_calls(client: &mut impl GenericClient, spool: &str, lock: &str) -> Result<Vec<CallRow>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM hostler.tool_calls WHERE spool = $1 AND {IS_OPEN} ORDER BY number LIMIT {AT_ONCE} {lock}"
    );
    Ok(client.query(&sql, &[&spool])?.iter().map(row).collect())
}

fn free_key(client: &mut impl GenericClient, tool: &str, key: &str, call: &str) -> Result<(), StoreError> {
    let sql = "DELETE FROM hostler.keys WHERE tool = $1 AND key = $2 AND call_id = $3";
    client.execute(sql, &[&clean(Some(tool)), &clean(Some(key)), &call])?;
    Ok(())
}

impl Store for PostgresStore {
    fn import(&mut self, spool: &str, batch: &Batch) -> Result<(), StoreError> {
        let mut transaction = self.client.client()?.transaction()?;
        let writer = Writer { spool, origin: &self.origin, is_fenced: true };
        apply(&mut transaction, writer, &batch.calls)?;
        let Position { segment, offset } = batch.at;
        transaction.execute(
            "INSERT INTO hostler.spools (name, segment, position) VALUES ($1, $2, $3)
             ON CONFLICT (name) DO UPDATE SET segment = $2, position = $3, heartbeat = clock_timestamp()",
            &[&spool, &number(segment), &number(offset)],
        )?;
        Ok(transaction.commit()?)
    }

    fn imported(&mut self, spool: &str) -> Result<Position, StoreError> {
        let found = self
            .client
            .client()?
            .query_opt("SELECT segment, position FROM hostler.spools WHERE name = $1", &[&spool])?;
        let unsigned = |value: i64| u64::try_from(value).unwrap_or_default();
        let at = found.map(|row| Position { segment: unsigned(row.get(0)), offset: unsigned(row.get(1)) });
        Ok(at.unwrap_or_default())
    }

    fn claim_key(
        &mut self,
        asked: &Keyed,
        spool: &str,
        _now_ms: u64,
        left: &dyn Fn(&str) -> io::Result<Left>,
    ) -> Result<Result<Claimed, String>, StoreError> {
        let lease = self.lease();
        let mut transaction = self.client.client()?.transaction()?;
        show(&mut transaction, spool)?;
        let (tool, key) = (clean(Some(&asked.tool)), clean(Some(&asked.key)));
        let taken = transaction.execute(
            "INSERT INTO hostler.keys (tool, key, digest, call_id, spool, person) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
            &[&tool, &key, &asked.digest, &asked.call, &spool, &self.person],
        )?;
        if taken > 0 {
            transaction.commit()?;
            return Ok(Ok(Claimed::First));
        }
        let remembered = i64::try_from(REMEMBERED_MS).unwrap_or(i64::MAX) / 1000;
        let known = transaction.query_opt(
            "SELECT digest, call_id, spool, created_at > now() - make_interval(secs => $3) FROM hostler.keys
             WHERE tool = $1 AND key = $2 AND person = $4 FOR UPDATE",
            #[expect(clippy::cast_precision_loss, reason = "a day in seconds")]
            &[&tool, &key, &(remembered as f64), &self.person],
        )?;
        // It was given back a moment ago: the caller asks again.
        let Some(known) = known else { return Ok(Err(String::new())) };
        let (digest, call, holder, counts): (String, String, String, bool) =
            (known.get(0), known.get(1), known.get(2), known.get(3));
        if counts && call != asked.call {
            // Asked before its call is looked for: a process leaves once its calls are there.
            let is_held = holder == spool || has_lease(&mut transaction, &holder, lease)?;
            let left = if is_held { Left::Process } else { left(&holder)? };
            let sql = format!("SELECT {COLUMNS} FROM hostler.tool_calls WHERE id = $1");
            let found = transaction.query_opt(&sql, &[&call])?.as_ref().map(row);
            let left = match &found {
                Some(row) if !row.holds_key() => Left::Nothing,
                Some(_) => Left::Process,
                None => left,
            };
            match left {
                Left::Process => {
                    let row = found.map(Box::new);
                    transaction.commit()?;
                    return Ok(Ok(Claimed::Known { call, is_same: digest == asked.digest, row }));
                }
                Left::Files => return Ok(Err(holder)),
                // It ended or died before it was begun.
                Left::Nothing => {}
            }
        }
        transaction.execute(
            "UPDATE hostler.keys SET digest = $3, call_id = $4, spool = $5, created_at = now() \
             WHERE tool = $1 AND key = $2 AND person = $6",
            &[&tool, &key, &asked.digest, &asked.call, &spool, &self.person],
        )?;
        transaction.commit()?;
        Ok(Ok(Claimed::First))
    }

    fn free_key(&mut self, tool: &str, key: &str, call: &str, spool: &str) -> Result<(), StoreError> {
        let sql = "DELETE FROM hostler.keys WHERE tool = $1 AND key = $2 AND call_id = $3
                   AND NOT EXISTS (SELECT FROM hostler.tool_calls WHERE id = $3 AND hostler.tool_calls.spool <> $4)";
        self.client.client()?.execute(sql, &[&clean(Some(tool)), &clean(Some(key)), &call, &spool])?;
        Ok(())
    }

    fn forget(&mut self, spool: &str) -> Result<(), StoreError> {
        self.client.client()?.execute("DELETE FROM hostler.spools WHERE name = $1", &[&spool])?;
        Ok(())
    }

    fn beat(&mut self, spool: &str, now_ms: u64) -> Result<(), StoreError> {
        let mut transaction = self.client.client()?.transaction()?;
        show(&mut transaction, spool)?;
        let sql = format!(
            "UPDATE hostler.tool_calls SET last_heartbeat = $2 WHERE spool = $1 AND state = 'running' AND {IS_OPEN}"
        );
        transaction.execute(&sql, &[&spool, &number(now_ms)])?;
        Ok(transaction.commit()?)
    }

    fn open_calls(&mut self, spool: &str) -> Result<Vec<CallRow>, StoreError> {
        open_calls(self.client.client()?, spool, "")
    }

    fn take_over(
        &mut self,
        from: &str,
        to: &str,
        is_gone: bool,
        decide: &mut dyn FnMut(&CallRow) -> Change,
    ) -> Result<usize, StoreError> {
        let lease = self.lease();
        let mut transaction = self.client.client()?.transaction()?;
        if !is_gone && is_held(&mut transaction, from, lease)? {
            return Ok(0);
        }
        show(&mut transaction, to)?;
        let writer = Writer { spool: to, origin: &self.origin, is_fenced: false };
        let open = open_calls(&mut transaction, from, "FOR UPDATE")?;
        for row in &open {
            let change = decide(row);
            if let (true, Some(key)) = (change.frees_key, &row.key) {
                free_key(&mut transaction, &row.tool_name, key, &row.id)?;
            }
            apply(&mut transaction, writer, &[change])?;
        }
        transaction.commit()?;
        Ok(open.len())
    }

    fn ask_end(&mut self, id: &str, why: &str) -> Result<bool, StoreError> {
        let sql = format!("UPDATE hostler.tool_calls SET cancelled = $2 WHERE id = $1 AND {IS_OPEN}");
        Ok(self.client.client()?.execute(&sql, &[&id, &clean(Some(why))])? > 0)
    }

    fn asked_to_end(&mut self, spool: &str) -> Result<Vec<String>, StoreError> {
        let sql = format!("SELECT id FROM hostler.tool_calls WHERE spool = $1 AND {IS_OPEN} AND cancelled IS NOT NULL");
        Ok(self.client.client()?.query(&sql, &[&spool])?.iter().map(|row| row.get(0)).collect())
    }

    /// Only those whose lease has expired, and none of other people: their tools are not this one's.
    fn open_spools(&mut self) -> Result<Vec<String>, StoreError> {
        if self.connected.elapsed() < self.lease {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT DISTINCT spool FROM hostler.tool_calls
             WHERE {IS_OPEN} AND spool <> '' AND starts_with(origin, $2 || '@') AND NOT EXISTS
                (SELECT FROM hostler.spools WHERE name = spool AND heartbeat > clock_timestamp() - make_interval(secs => $1))"
        );
        let lease = self.lease();
        Ok(self.client.client()?.query(&sql, &[&lease, &self.person])?.iter().map(|row| row.get(0)).collect())
    }

    fn take_queued(&mut self, spool: &str, tools: &[String], at_most: u64) -> Result<Vec<ToRun>, StoreError> {
        let mut transaction = self.client.client()?.transaction()?;
        show(&mut transaction, spool)?;
        // What another process takes at the same time is passed over.
        let sql = format!(
            "UPDATE hostler.tool_calls SET spool = $1, origin = $4 WHERE number IN
                (SELECT number FROM hostler.tool_calls WHERE spool = '' AND {IS_OPEN} AND state = 'created'
                    AND (tool_name = ANY ($2) OR split_part(tool_name, '.', 1) = ANY ($2) OR '*' = ANY ($2))
                 ORDER BY number LIMIT $3 FOR UPDATE SKIP LOCKED)
             RETURNING id"
        );
        let taken = transaction.query(&sql, &[&spool, &tools, &number(at_most), &self.origin])?;
        transaction.commit()?;
        Ok(taken.iter().map(|row| ToRun { id: row.get(0), retry_count: 0, retry_at: None }).collect())
    }

    fn begin(&mut self, id: &str, spool: &str, boot: &str) -> Result<bool, StoreError> {
        // From now on others do not take it for one that was certainly not begun. Its key may be another call's, if this process did
        // not show itself before its call was here; after the time that a key is remembered, that means nothing.
        let sql = format!(
            "UPDATE hostler.tool_calls AS call SET boot_id = $3
             WHERE id = $1 AND spool = $2 AND {IS_OPEN} AND NOT EXISTS (
                 SELECT FROM hostler.keys AS taken
                 WHERE taken.tool = call.tool_name AND taken.key = call.key AND taken.call_id <> call.id
                   AND starts_with(call.origin, taken.person || '@')
                   AND taken.created_at < to_timestamp((call.created_at + $4) / 1000.0))"
        );
        let remembered = i64::try_from(REMEMBERED_MS).unwrap_or(i64::MAX);
        Ok(self.client.client()?.execute(&sql, &[&id, &spool, &boot, &remembered])? > 0)
    }

    fn held(&mut self) -> Result<Held, StoreError> {
        let sql = "SELECT count(*) FILTER (WHERE origin = $1), count(*), pg_total_relation_size('hostler.tool_calls')
                   FROM hostler.tool_calls";
        let row = self.client.client()?.query_one(sql, &[&self.origin])?;
        let [own, all, bytes] = [0, 1, 2].map(|place| u64::try_from(row.get::<_, i64>(place)).unwrap_or_default());
        // As if all were of one size.
        let bytes = u128::from(bytes) * u128::from(own) / u128::from(all.max(1));
        Ok(Held { calls: own, bytes: u64::try_from(bytes).unwrap_or(u64::MAX) })
    }

    fn versions(&mut self) -> Result<HashSet<String>, StoreError> {
        let found = self.client.client()?.query("SELECT DISTINCT tool_version FROM hostler.tool_calls", &[])?;
        Ok(found.iter().map(|row| row.get(0)).collect())
    }

    fn count(&mut self, excess: Excess, now_ms: u64) -> Result<u64, StoreError> {
        let sql = format!(
            "SELECT count(*), count(*) FILTER (WHERE updated_at < $3) FROM hostler.tool_calls WHERE {}",
            may_go()
        );
        let row =
            self.client.client()?.query_one(&sql, &[&self.origin, &keys_since(now_ms), &number(excess.before_ms)])?;
        let [all, old] = [0, 1].map(|place| u64::try_from(row.get::<_, i64>(place)).unwrap_or_default());
        Ok(old.max(excess.count.min(all)))
    }

    fn remove(&mut self, excess: Excess, at_most: u64, now_ms: u64) -> Result<u64, StoreError> {
        let (before, limit) =
            if excess.count > 0 { (u64::MAX, excess.count.min(at_most)) } else { (excess.before_ms, at_most) };
        let sql = format!(
            "DELETE FROM hostler.tool_calls WHERE number IN
                (SELECT number FROM hostler.tool_calls WHERE {} AND updated_at < $3 ORDER BY updated_at LIMIT $4)",
            may_go()
        );
        let values: [&(dyn ToSql + Sync); 4] = [&self.origin, &keys_since(now_ms), &number(before), &number(limit)];
        Ok(self.client.client()?.execute(&sql, &values)?)
    }

    fn tidied(&mut self, _now_ms: u64) -> Result<(), StoreError> {
        #[expect(clippy::cast_precision_loss, reason = "a day in seconds")]
        let remembered = REMEMBERED_MS as f64 / 1000.0;
        let sql = "DELETE FROM hostler.keys WHERE created_at < now() - make_interval(secs => $1)";
        self.client.client()?.execute(sql, &[&remembered])?;
        // Of processes that took a key and wrote nothing down.
        let sql = "DELETE FROM hostler.spools WHERE segment = 0 AND heartbeat < clock_timestamp() - make_interval(secs => $1)";
        self.client.client()?.execute(sql, &[&remembered])?;
        Ok(())
    }

    /// A commit is as safe as the server makes it.
    fn synced(&mut self) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// The server gives up what was removed by itself.
    fn erased(&mut self) -> Result<bool, StoreError> {
        Ok(true)
    }

    fn call(&mut self, id: &str) -> Result<Option<CallRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM hostler.tool_calls WHERE id = $1");
        Ok(self.client.client()?.query_opt(&sql, &[&id])?.as_ref().map(row))
    }

    fn calls(&mut self, filter: &RowFilter) -> Result<Vec<CallRow>, StoreError> {
        let states: Vec<&str> = filter.states.iter().map(|state| state.word()).collect();
        let behind = filter.id.as_ref().map(|begin| format!("{begin}~"));
        let sql = format!(
            "SELECT {LISTED} FROM hostler.tool_calls
             WHERE ($1::text IS NULL OR (id COLLATE \"C\" >= $1 AND id COLLATE \"C\" < $2)) AND ($3::text IS NULL OR tool_name = $3)
                AND ($4::text IS NULL OR $4 = ANY (tags)) AND (cardinality($5::text[]) = 0 OR state = ANY ($5))
             ORDER BY number DESC LIMIT $6"
        );
        let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
        let found =
            self.client.client()?.query(&sql, &[&filter.id, &behind, &filter.tool, &filter.tag, &states, &limit])?;
        Ok(found.iter().map(row).collect())
    }
}

/// Keys of calls that are younger count.
fn keys_since(now_ms: u64) -> i64 {
    number(now_ms.saturating_sub(REMEMBERED_MS))
}
