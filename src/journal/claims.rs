//! Taking and giving back idempotency keys, which others may hold at the same time.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::keys::{Claimed, Keyed};
use super::place::Left;
use super::store::{LazyStore, Store, StoreError};
use super::{Journal, LONGEST_WORK, WORKING, cannot_be_asked, recover};
use crate::telemetry::unix_ms;
use crate::threads::{blocking, blocking_within};

/// The pause while another process recovers a spool.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// The pause before a key is given back again, and how often that is tried: the store may be away for some minutes.
const GIVE_BACK: (Duration, u32) = (Duration::from_secs(2), 150);

impl Journal {
    /// Takes a key for a request, unless another call has it. Says why that cannot be known.
    pub async fn claim_key(&self, asked: Keyed) -> Result<Claimed, String> {
        let mut read = HashSet::new();
        loop {
            match self.claimed(&asked, &read).await? {
                Ok(claimed) => return Ok(claimed),
                Err(holder) => {
                    if self.brought(holder.clone()).await? {
                        read.insert(holder);
                    }
                }
            }
        }
    }

    /// One look at the store: the name of a spool if only that says whether the key is taken. These spools have been `read`.
    async fn claimed(&self, asked: &Keyed, read: &HashSet<String>) -> Result<Result<Claimed, String>, String> {
        let (place, spool, known) = (self.place().clone(), self.spool.claim().name.clone(), read.clone());
        let left = move |name: &str| if known.contains(name) { Ok(Left::Nothing) } else { place.left(name) };
        let (store, wanted) = (Arc::clone(&self.store), asked.clone());
        let claim = move |store: &mut dyn Store| store.claim_key(&wanted, &spool, unix_ms(), &left);
        let mut working = Box::pin(blocking_within(&WORKING, move || store.with(claim)));
        if let Ok(claimed) = tokio::time::timeout(LONGEST_WORK, &mut working).await {
            return claimed.map_err(|error| cannot_be_asked(&error))?.map_err(|error| cannot_be_asked(&error));
        }
        // It may take the key yet, for a call that is not made.
        let (store, asked, spool) = (Arc::clone(&self.store), asked.clone(), self.spool.claim().name.clone());
        tokio::spawn(async move {
            if matches!(working.await, Ok(Ok(Ok(Claimed::First)))) {
                give_back(store, asked, spool).await;
            }
        });
        Err(cannot_be_asked(&"it does not answer"))
    }

    /// Brings the spool of a process that is gone to the store. False if another process did that meanwhile.
    async fn brought(&self, name: String) -> Result<bool, String> {
        let (store, place) = (Arc::clone(&self.store), self.place().clone());
        let work = blocking(move || match place.abandoned(&name)? {
            Some(claim) => recover::bring(&claim, &store).map(Some),
            None => Ok::<_, StoreError>(None),
        });
        match work.map_err(|error| cannot_be_asked(&error))?.await.map_err(|error| cannot_be_asked(&error))? {
            Some(true) => Ok(true),
            Some(false) => Err(cannot_be_asked(&"a spool that may have the call of this key is not readable")),
            None => {
                tokio::time::sleep(LOOK_AGAIN).await;
                Ok(false)
            }
        }
    }

    /// Gives a key back: its call was never begun. Where the store does not take that now, it is tried again.
    pub async fn free_key(&self, tool: String, key: String, call: String) {
        let (asked, spool) = (Keyed { tool, key, call, digest: String::new() }, self.spool.claim().name.clone());
        if !is_free(&self.store, &asked, &spool).await {
            tokio::spawn(give_back(Arc::clone(&self.store), asked, spool));
        }
    }
}

/// Gives a key back, as soon as the store takes that.
async fn give_back(store: Arc<LazyStore>, asked: Keyed, spool: String) {
    let (pause, tries) = GIVE_BACK;
    for _ in 0..tries {
        if is_free(&store, &asked, &spool).await {
            return;
        }
        tokio::time::sleep(pause).await;
    }
    tracing::warn!(tool = asked.tool, "an idempotency key stays taken for a day, though its call was not made");
}

async fn is_free(store: &Arc<LazyStore>, asked: &Keyed, spool: &str) -> bool {
    let (store, asked, spool) = (Arc::clone(store), asked.clone(), spool.to_owned());
    let free = move || store.with(|store| store.free_key(&asked.tool, &asked.key, &asked.call, &spool));
    let freed = tokio::time::timeout(LONGEST_WORK, blocking_within(&WORKING, free)).await;
    matches!(freed, Ok(Ok(Ok(()))))
}
