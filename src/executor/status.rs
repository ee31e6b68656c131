//! How everything stands: what an operator looks at, for every face.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use super::pooled::Pools;
use crate::pool::{Pool, PoolStatus, Usage};

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
        let known: Vec<(String, PathBuf, bool, Arc<Pool>)> = {
            let open = self.open.lock();
            let current = open.current.iter().map(|(path, one)| (path, true, one));
            let older = open.older.iter().map(|(path, one)| (path, false, one));
            let named = |(path, is_current, one): (&PathBuf, bool, &super::versions::Current)| {
                (one.pack.clone(), path.clone(), is_current, Arc::clone(&one.pool))
            };
            current.chain(older).map(named).collect()
        };
        let mut pools = Vec::new();
        for (pack, file, current, pool) in known {
            if let Some(pool) = pool.status().await {
                pools.push(FileStatus { pack, file, current, pool });
            }
        }
        pools.sort_by(|left, right| (&left.pack, !left.current).cmp(&(&right.pack, !right.current)));
        Status { usage: self.shared.usage(), pools }
    }
}
