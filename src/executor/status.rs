//! How everything stands: what an operator looks at, for every face.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::pooled::Pools;
use super::store::PoolLease;
use crate::discovery::SourceId;
use crate::pool::{PoolStatus, Usage};

/// hostler at a moment.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// Of what all tools share.
    pub usage: Usage,
    /// Every pool there is, by pack; a changed file has two for a while.
    pub pools: Vec<FileStatus>,
}

/// The pool of one version of a tool file.
#[derive(Debug, Clone, Serialize)]
pub struct FileStatus {
    /// The pack.
    pub pack: String,
    /// The tool file.
    pub file: PathBuf,
    /// Whether new calls go to it; an older version only finishes what it has.
    pub current: bool,
    /// The rest.
    #[serde(flatten)]
    pub pool: PoolStatus,
}

impl Pools {
    /// How everything stands. Tool files that were never called have no pool.
    pub async fn status(&self) -> Status {
        let known: Vec<(String, SourceId, bool, Arc<PoolLease>)> = {
            let open = self.open.lock();
            let current = open.current.iter().map(|(source, one)| (source, true, one));
            let older = open.older.iter().map(|(source, one)| (source, false, one));
            let named = |(source, is_current, one): (&SourceId, bool, &super::versions::Current)| {
                (one.pack.clone(), source.clone(), is_current, Arc::clone(&one.pool))
            };
            current.chain(older).map(named).collect()
        };
        let mut pools = Vec::new();
        for (pack, source, current, pool) in known {
            if let Some(pool) = pool.status().await {
                let file = source.path().map(Path::to_owned).unwrap_or_default();
                pools.push(FileStatus { pack, file, current, pool });
            }
        }
        pools.sort_by(|left, right| (&left.pack, !left.current).cmp(&(&right.pack, !right.current)));
        Status { usage: self.store.broker.usage(), pools }
    }
}
