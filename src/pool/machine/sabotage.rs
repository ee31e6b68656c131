//! Built-in faults for tests only: the simulation must detect each of them.

/// Whether this fault is active. Always false outside tests.
macro_rules! sabotaged {
    ($machine:expr, $mutant:ident) => {{
        #[cfg(test)]
        {
            $machine.mutant == Some(crate::pool::machine::Mutant::$mutant)
        }
        #[cfg(not(test))]
        {
            false
        }
    }};
}
pub(super) use sabotaged;

/// A fault.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pool) enum Mutant {
    /// The calls behind one that died are lost.
    DropRequeue,
    /// A caller is answered twice.
    AnswerTwice,
    /// No timer is set for a call that waits for the end of a pause.
    ForgetTimer,
    /// A stopping worker is sent calls.
    SendToLeaving,
    /// A worker that was asked to exit is sent calls.
    SendToEnding,
    /// An answer is accepted from any worker.
    BelieveLateNews,
    /// A non-idempotent call is repeated.
    RepeatOnce,
    /// The limits on calls and workers are exceeded.
    IgnoreCap,
    /// Run permits are never returned.
    LeakRunPermit,
    /// Worker permits are never returned.
    LeakWorkerPermit,
    /// A worker evicted for memory is started again at once.
    StartAgain,
    /// A stuck call keeps its permit after its caller was answered.
    KeepRunPermit,
    /// A parked call keeps its run permit.
    ParkWithPermit,
    /// A recalled call is lost.
    DropReturned,
    /// A session may fill the queue for good.
    FavourTheFirst,
    /// A call that must begin at once is written behind another.
    WriteAheadAnyway,
}

#[cfg(test)]
impl Mutant {
    pub const ALL: [Self; 16] = [
        Self::DropRequeue,
        Self::AnswerTwice,
        Self::ForgetTimer,
        Self::SendToLeaving,
        Self::SendToEnding,
        Self::BelieveLateNews,
        Self::RepeatOnce,
        Self::IgnoreCap,
        Self::LeakRunPermit,
        Self::LeakWorkerPermit,
        Self::StartAgain,
        Self::KeepRunPermit,
        Self::ParkWithPermit,
        Self::DropReturned,
        Self::FavourTheFirst,
        Self::WriteAheadAnyway,
    ];
}
