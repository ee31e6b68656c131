//! Any life of a journal against a model of what was promised: processes accept, begin, end, retry and die at any moment, machines are
//! restarted, and others go on. The spool, the store and recovery are the real ones; only the tools are imagined.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;

use super::reader::Reader;
use super::*;

/// What happens. Numbers choose among the calls for which it may happen.
#[derive(Debug, Clone)]
enum Step {
    /// A call is accepted, and acknowledged if that is written.
    Accept { once: bool, background: bool, is_written: bool },
    /// It is written that a call goes to its tool, which begins unless the process dies before.
    Begin { which: usize, dies_before: bool },
    /// A call ends, and its client hears it if that is written.
    End { which: usize, is_well: bool, is_heard: bool },
    /// The attempt of a call fails, and it will be tried again.
    Retry { which: usize },
    /// Somebody asks for the end of a call in the store.
    Cancel { which: usize },
    /// The store is brought up to date.
    Bring,
    /// The process dies, perhaps with the machine, and another one goes on.
    Die { loses_power: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0_usize..100;
    prop_oneof![
        6 => (any::<bool>(), any::<bool>(), prop::bool::weighted(0.8))
            .prop_map(|(once, background, is_written)| Step::Accept { once, background, is_written }),
        6 => (which.clone(), prop::bool::weighted(0.2)).prop_map(|(which, dies_before)| Step::Begin { which, dies_before }),
        4 => (which.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(which, is_well, is_heard)| Step::End { which, is_well, is_heard }),
        2 => which.clone().prop_map(|which| Step::Retry { which }),
        1 => which.prop_map(|which| Step::Cancel { which }),
        3 => Just(Step::Bring),
        3 => prop::bool::weighted(0.2).prop_map(|loses_power| Step::Die { loses_power }),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Now {
    Accepted,
    Begun,
    /// It has ended, or its outcome is unknown.
    Over,
}

/// What is known of a call by who made it.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent of each other")]
struct Promised {
    once: bool,
    background: bool,
    is_acknowledged: bool,
    now: Now,
    /// How often its tool began.
    begun: u32,
    retries: u64,
    /// The outcome that its client heard.
    heard: Option<&'static str>,
    is_cancelled: bool,
}

struct Life<'a> {
    folder: &'a Path,
    boot: u32,
    journal: Arc<Journal>,
    store: LazyStore,
    calls: BTreeMap<Id, Promised>,
    /// The states in which calls have ended in the store.
    ended: BTreeMap<String, State>,
}

fn process(folder: &Path, boot: u32) -> Arc<Journal> {
    let person = Arc::new(Environment::from_iter([("XDG_STATE_HOME", folder)]));
    let journal = Journal::new(Claim::take(&person, "k").unwrap(), format!("boot{boot}"), person);
    // What a thread would bring is a step of its own.
    journal.is_filling.store(true, Ordering::Relaxed);
    journal
}

impl<'a> Life<'a> {
    fn new(folder: &'a Path) -> Self {
        let journal = process(folder, 1);
        let store = LazyStore::new(StoreAddress::File(journal.place().store()));
        Self { folder, boot: 1, journal, store, calls: BTreeMap::new(), ended: BTreeMap::new() }
    }

    /// The call that a number chooses among those in a state.
    fn chosen(&mut self, which: usize, now: Now) -> Option<(Id, &mut Promised)> {
        let mut found: Vec<_> = self.calls.iter_mut().filter(|(_, call)| call.now == now).collect();
        (!found.is_empty()).then(|| found.swap_remove(which % found.len())).map(|(id, call)| (*id, call))
    }

    fn accept(&mut self, id: Id) {
        let call = &self.calls[&id];
        self.journal.append(&Record::Accepted(Accepted {
            id,
            at_ms: 1,
            tool: "a.b",
            arguments: "{}",
            effects: if call.once { "once" } else { "pure" },
            level: "kept",
            background: call.background,
            max_retries: if call.once { 0 } else { 3 },
            ..Accepted::default()
        }));
    }

    fn end(&mut self, id: Id, state: &'static str, is_heard: bool) {
        self.journal.append(&Record::Finished(Finished { id, at_ms: 3, state, ..Finished::default() }));
        let call = self.calls.get_mut(&id).unwrap();
        call.now = Now::Over;
        // The answer stands behind the record.
        if is_heard {
            self.journal.pass();
            call.heard = Some(state);
        }
    }

    /// Lets it happen, where it can.
    fn take(&mut self, step: &Step) {
        match *step {
            Step::Accept { once, background, is_written } => {
                let mut id = Id::default();
                id[0] = u8::try_from(self.calls.len() + 1).unwrap();
                let (now, heard) = (Now::Accepted, None);
                let is_acknowledged = is_written && background;
                let call = Promised {
                    once,
                    background,
                    is_acknowledged,
                    now,
                    begun: 0,
                    retries: 0,
                    heard,
                    is_cancelled: false,
                };
                self.calls.insert(id, call);
                self.accept(id);
                if is_written {
                    self.journal.pass();
                }
            }
            Step::Begin { which, dies_before } => {
                let Some((id, call)) = self.chosen(which, Now::Accepted) else { return };
                call.now = Now::Begun;
                call.begun += u32::from(!dies_before);
                let attempt = call.retries + 1;
                self.journal.append(&Record::Dispatched(Dispatched { id, at_ms: 2, attempt, ..Dispatched::default() }));
                self.journal.pass();
                if dies_before {
                    self.die(false);
                }
            }
            Step::End { which, is_well, is_heard } => {
                let Some((id, _)) = self.chosen(which, Now::Begun) else { return };
                self.end(id, if is_well { "complete" } else { "error" }, is_heard);
            }
            Step::Retry { which } => {
                let Some((id, call)) = self.chosen(which, Now::Begun) else { return };
                if call.once || call.retries == 3 {
                    return;
                }
                call.now = Now::Accepted;
                call.retries += 1;
                let (retry, retry_at_ms) = (call.retries, 5);
                self.journal.append(&Record::Retrying(Retrying { id, at_ms: 4, retry, retry_at_ms, fault: "{}" }));
                self.journal.pass();
            }
            Step::Cancel { which } => {
                if !self.store.address().may_exist() {
                    return;
                }
                let Some((id, _)) = self.chosen(which, Now::Accepted) else { return };
                let name = data_encoding::HEXLOWER.encode(&id);
                let is_asked = self.store.with(|store| store.ask_end(&name, "somebody")).unwrap();
                self.calls.get_mut(&id).unwrap().is_cancelled |= is_asked;
            }
            Step::Bring => self.bring(),
            Step::Die { loses_power } => self.die(loses_power),
        }
    }

    /// Brings what is written to the store, as the thread of the process does.
    fn bring(&mut self) {
        self.journal.pass();
        let claim = self.journal.spool.claim();
        let mut reader = Reader::at(self.store.with(|store| store.imported(&claim.name)).unwrap());
        while let Some(read) = reader.next(claim, Some(self.journal.spool.position())).unwrap() {
            self.store.with(|store| store.import(&claim.name, &read.batch)).unwrap();
        }
        self.look();
    }

    fn die(&mut self, loses_power: bool) {
        self.boot += u32::from(loses_power);
        let next = process(self.folder, self.boot);
        let dead = std::mem::replace(&mut self.journal, next);
        dead.spool.claim().release();
        // As if its threads had gone with it, and what was not written.
        std::mem::forget(dead);
        let recovered = recover::recover(self.journal.spool.claim(), &format!("boot{}", self.boot), &self.store);
        assert!(recovered.trouble.is_none(), "{:?}", recovered.trouble);
        for call in self.calls.values_mut() {
            call.now = Now::Over;
        }
        for again in recovered.to_run {
            let mut id = Id::default();
            data_encoding::HEXLOWER.decode_mut(again.id.as_bytes(), &mut id).unwrap();
            let call = self.calls.get_mut(&id).expect("nothing is invented");
            assert!(call.background && !call.is_cancelled && call.heard.is_none(), "{id:?} {call:?}");
            assert!(!call.once || call.begun == 0, "twice: {call:?}");
            (call.now, call.retries) = (Now::Accepted, again.retry_count);
            self.accept(id);
        }
        self.look();
    }

    /// What has ended in the store stays as it is, and is what clients heard.
    fn look(&mut self) {
        if !self.store.address().may_exist() {
            return;
        }
        let all = RowFilter { limit: 1000, ..RowFilter::default() };
        for row in self.store.with(|store| store.calls(&all)).unwrap() {
            let Some(state) = row.state.filter(|state| state.is_final()) else { continue };
            let before = *self.ended.entry(row.id.clone()).or_insert(state);
            assert_eq!(before, state, "{}", row.id);
        }
    }

    /// Everything that may still run ends, and the promises are looked at.
    fn finish(mut self) {
        self.die(false);
        for id in self.calls.keys().copied().collect::<Vec<_>>() {
            let call = self.calls.get_mut(&id).unwrap();
            if call.now == Now::Accepted {
                call.begun += 1;
                self.end(id, "complete", true);
            }
        }
        self.bring();
        for (id, call) in &self.calls {
            let name = data_encoding::HEXLOWER.encode(id);
            let state = self.ended.get(&name).copied();
            assert!(!call.once || call.begun <= 1, "{call:?}");
            assert!(!call.is_acknowledged || state.is_some(), "lost: {call:?}");
            if let Some(heard) = call.heard {
                assert_eq!(state.map(State::word), Some(heard), "{call:?}");
            }
        }
        let open = self.store.with(|store| store.open_spools()).unwrap();
        assert!(open.is_empty(), "left open: {open:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_promises_hold(steps in prop::collection::vec(step(), 1..60)) {
        let base = tempfile::tempdir().unwrap();
        let mut life = Life::new(base.path());
        for step in &steps {
            life.take(step);
        }
        life.finish();
    }
}
