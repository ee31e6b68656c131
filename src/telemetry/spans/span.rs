//! An ended call as it is exported.

/// An ended call as a span.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    /// The trace, in hexadecimal, as are the other ids.
    pub trace: &'a str,
    /// Its own id.
    pub id: &'a str,
    /// The span in which it was made.
    pub parent: Option<&'a str>,
    /// The `tracestate` of its trace.
    pub state: Option<&'a str>,
    /// Its name.
    pub name: &'a str,
    /// Whether it answers a request of another process.
    pub is_server: bool,
    /// Nanoseconds since 1970.
    pub began: u64,
    /// The same.
    pub ended: u64,
    /// What is known of it.
    pub attributes: &'a [(&'static str, Value<'a>)],
    /// Why it failed.
    pub error: Option<&'a str>,
}

/// The value of an attribute.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    String(&'a str),
    Bool(bool),
    Int(i64),
    Double(f64),
}
