//! One line of the table: a figure, what it should be, and whether it is.

use std::fmt;

/// What a figure should be.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    AtMost(f64),
    AtLeast(f64),
    Open,
}

impl Target {
    fn met(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
            Self::Open => true,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(limit) => f.pad(&format!("≤ {limit}")),
            Self::AtLeast(limit) => f.pad(&format!("≥ {limit}")),
            Self::Open => f.pad("–"),
        }
    }
}

/// A measured row.
pub struct Measured {
    what: String,
    figure: String,
    now: Target,
    aim: Target,
    verdict: String,
    from: String,
}

/// The verdict on a row that misses the budget of now.
const MISSED: &str = "NOT MET";

impl Measured {
    /// A figure without a target.
    pub fn plain(what: &str, value: f64, unit: &str) -> Self {
        Self {
            what: what.to_owned(),
            figure: format!("{}{unit}", rounded(value)),
            now: Target::Open,
            aim: Target::Open,
            verdict: "–".to_owned(),
            from: String::new(),
        }
    }

    /// A figure with what it should be now and what it should become.
    pub fn against(what: &str, value: f64, unit: &str, now: Target, aim: Target) -> Self {
        let verdict = match (now.met(value), aim.met(value), now, aim) {
            (false, ..) => MISSED,
            (true, true, _, Target::AtMost(_) | Target::AtLeast(_)) => "aim met",
            (true, false, Target::Open, _) => "not yet",
            (true, ..) => "met",
        };
        Self { now, aim, verdict: verdict.to_owned(), ..Self::plain(what, value, unit) }
    }

    /// Whether it keeps the budget of now.
    pub fn holds(&self) -> bool {
        self.verdict != MISSED
    }

    /// The raw figures behind it.
    #[must_use]
    pub fn from(mut self, raw: String) -> Self {
        self.from = raw;
        self
    }

    /// A row that needs something this machine does not have.
    pub fn skipped(what: &str, why: &str) -> Self {
        Self { verdict: "skipped".to_owned(), figure: "–".to_owned(), ..Self::plain(what, f64::NAN, "") }
            .from(why.to_owned())
    }

    /// A row that could not be measured, or whose answers were wrong.
    pub fn failed(what: &str, why: &str) -> Self {
        Self { verdict: "FAILED".to_owned(), ..Self::skipped(what, why) }
    }
}

/// Three digits that count.
pub fn rounded(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

pub fn head() -> String {
    let line = format!("{:<58} {:>10}  {:<7} {:<7} {:<8} {}", "row", "figure", "now", "aim", "", "from");
    format!("{line}\n{}", "─".repeat(132))
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, figure, now, aim, verdict, from } = self;
        write!(f, "{what:<58} {figure:>10}  {now:<7} {aim:<7} {verdict:<8} {from}")
    }
}
