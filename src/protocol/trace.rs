//! W3C trace context: where a call belongs in its caller's trace.

use std::fmt;

/// The most bytes of a `tracestate` that are passed on; a longer one is ignored. The recommendation asks for at least 512.
const MAX_STATE: usize = 2048;
/// The most members that a `tracestate` may have.
const MAX_MEMBERS: usize = 32;
/// The length of a `traceparent`.
const LENGTH: usize = 55;

/// A span and its trace (W3C trace context): the one in which a call was made, or that of a call itself.
#[derive(Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// `00-TRACE-SPAN-FLAGS`, in lower case.
    parent: Box<str>,
    state: Option<Box<str>>,
}

impl TraceContext {
    /// Reads `traceparent` and `tracestate`. `None` if the former is invalid; an invalid `tracestate` is left out.
    pub fn read(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let (known, rest) = traceparent.trim().split_at_checked(LENGTH)?;
        let [version, trace, span, flags] = known.split('-').collect::<Vec<_>>().try_into().ok()?;
        let is_later = version != "00";
        let fits = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
        // Later versions may append something.
        if !fits || version == "ff" || !(rest.is_empty() || is_later && rest.starts_with('-')) {
            return None;
        }
        if is_zero(trace) || is_zero(span) {
            return None;
        }
        // Of the flags of later versions, only these are known.
        let flags = u8::from_str_radix(flags, 16).ok()? & 3;
        let state = tracestate.map(str::trim).filter(|state| is_state(state)).map(Into::into);
        Some(Self { parent: traceparent_of(trace, span, flags).into(), state })
    }

    /// The span that a process was started in, by its variables.
    pub fn of_variables(value: impl Fn(&str) -> Option<String>) -> Option<Self> {
        Self::read(&value("TRACEPARENT")?, value("TRACESTATE").as_deref())
    }

    /// The beginning of a trace that is recorded.
    pub fn root(trace: &str, span: &str) -> Self {
        Self { parent: traceparent_of(trace, span, 1).into(), state: None }
    }

    /// A span within this one.
    #[must_use]
    pub fn child(&self, span: &str) -> Self {
        Self { parent: traceparent_of(self.trace_id(), span, self.flags()).into(), state: self.state.clone() }
    }

    /// The same span without its `tracestate`.
    #[must_use]
    pub fn without_state(&self) -> Self {
        Self { state: None, ..self.clone() }
    }

    /// As a `traceparent`.
    pub fn traceparent(&self) -> &str {
        &self.parent
    }

    /// As a `tracestate`.
    pub fn tracestate(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// The trace, in hexadecimal.
    pub fn trace_id(&self) -> &str {
        &self.parent[3..35]
    }

    /// The span, in hexadecimal.
    pub fn span_id(&self) -> &str {
        &self.parent[36..52]
    }

    /// Whether the trace is recorded.
    pub fn is_sampled(&self) -> bool {
        self.flags() & 1 == 1
    }

    fn flags(&self) -> u8 {
        u8::from_str_radix(&self.parent[53..], 16).unwrap_or_default()
    }

    /// The variables by which programs learn of it.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let state = self.tracestate().map(|state| ("TRACESTATE", state));
        std::iter::once(("TRACEPARENT", self.traceparent())).chain(state)
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.parent)
    }
}

fn traceparent_of(trace: &str, span: &str, flags: u8) -> String {
    format!("00-{trace}-{span}-{flags:02x}")
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_zero(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'0')
}

fn is_state(state: &str) -> bool {
    let members = || state.split(',').map(str::trim).filter(|member| !member.is_empty());
    state.len() <= MAX_STATE && (1..=MAX_MEMBERS).contains(&members().count()) && members().all(is_member)
}

fn is_member(member: &str) -> bool {
    let Some((key, value)) = member.split_once('=') else { return false };
    let is_key = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
    let is_value = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b',' | b'=');
    (1..=256).contains(&key.len())
        && key.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
        && key.bytes().all(is_key)
        && (1..=256).contains(&value.len())
        && value.bytes().all(is_value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn only_what_the_recommendation_allows_is_read() {
        let good = format!("00-{TRACE}-{SPAN}-01");
        let read = |text: &str| TraceContext::read(text, None).map(|context| context.traceparent().to_owned());
        assert_eq!(read(&good).as_ref(), Some(&good));
        assert_eq!(read(&format!("cc-{TRACE}-{SPAN}-09-what")), Some(good.clone()), "of a later version");
        for bad in [
            String::new(),
            "00".to_owned(),
            format!("{good}-more"),
            format!("{good}x"),
            good.to_uppercase(),
            good.replacen("00", "ff", 1),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{TRACE}-{SPAN}-0g"),
            format!("00_{TRACE}_{SPAN}_01"),
            format!("00-{}-{SPAN}-01", "ä".repeat(16)),
        ] {
            assert_eq!(read(&bad), None, "{bad}");
        }
    }

    #[test]
    fn an_invalid_state_is_left_out_and_the_parent_stays() {
        let parent = format!("00-{TRACE}-{SPAN}-00");
        let state = |text: &str| {
            let context = TraceContext::read(&parent, Some(text))?;
            assert!(!context.is_sampled());
            context.tracestate().map(str::to_owned)
        };
        assert_eq!(state("congo=t61rc, rojo@x=00f,,").as_deref(), Some("congo=t61rc, rojo@x=00f,,"));
        let many = vec!["a=1"; 33].join(",");
        let long = format!("a={}", "x".repeat(257));
        for bad in ["", ",", "A=1", "a", "a=", "=1", "a=ä", "a=1=2", "a=\n", &many, &long] {
            assert_eq!(state(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_child_is_of_the_same_trace() {
        let outer = TraceContext::read(&format!("00-{TRACE}-{SPAN}-01"), Some("a=1")).unwrap();
        let child = outer.child("0123456789abcdef");
        assert_eq!((child.trace_id(), child.span_id(), child.is_sampled()), (TRACE, "0123456789abcdef", true));
        let variables: Vec<_> = child.variables().collect();
        let parent = format!("00-{TRACE}-0123456789abcdef-01");
        assert_eq!(variables, [("TRACEPARENT", &*parent), ("TRACESTATE", "a=1")]);
    }

    proptest! {
        #[test]
        fn foreign_text_is_read_or_ignored(text in "[0-9a-f-]{0,60}|.{0,60}", state in ".{0,20}") {
            if let Some(context) = TraceContext::read(&text, Some(&state)) {
                prop_assert_eq!(context.traceparent().len(), LENGTH);
                prop_assert_eq!(TraceContext::read(context.traceparent(), context.tracestate()), Some(context));
            }
        }
    }
}
