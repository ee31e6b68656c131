//! Faults built in on purpose, for tests alone: the simulation must see each of them, or it sees nothing.

/// Whether the machine is to do this wrong. Never, outside of tests.
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

/// One fault.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pool) enum Mutant {
    /// Calls behind one that died are forgotten.
    DropRequeue,
    /// A caller is answered twice.
    AnswerTwice,
    /// Nobody comes back for a call that waits for the end of a pause.
    ForgetTimer,
    /// A worker that is leaving gets calls.
    SendToLeaving,
    /// An answer is believed whoever gave it.
    BelieveLateNews,
    /// A call that must happen at most once is made again.
    RepeatOnce,
    /// More calls and workers than there may be.
    IgnoreCap,
    /// Admission are never given back.
    LeakTurn,
    /// Seats are never given back.
    LeakSeat,
    /// What had to go for want of memory is started again at once.
    StartAgain,
    /// A call that obeys nothing keeps its permit, though its caller was answered.
    KeepTurn,
}

#[cfg(test)]
impl Mutant {
    pub const ALL: [Self; 11] = [
        Self::DropRequeue,
        Self::AnswerTwice,
        Self::ForgetTimer,
        Self::SendToLeaving,
        Self::BelieveLateNews,
        Self::RepeatOnce,
        Self::IgnoreCap,
        Self::LeakTurn,
        Self::LeakSeat,
        Self::StartAgain,
        Self::KeepTurn,
    ];
}
