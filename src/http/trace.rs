//! The span that a request was sent in, by its headers.

use hyper::HeaderMap;
use hyper::header::HeaderName;

use super::guard::only;
use crate::protocol::TraceContext;

const PARENT: HeaderName = HeaderName::from_static("traceparent");
const STATE: HeaderName = HeaderName::from_static("tracestate");

/// The context of a request. Of two, neither counts: it is not known which one was meant.
pub fn context_of(headers: &HeaderMap) -> Option<TraceContext> {
    let parent = only(headers, &PARENT).ok()??;
    // A list, which may be divided among several headers.
    let states: Option<Vec<&str>> = headers.get_all(STATE).iter().map(|value| value.to_str().ok()).collect();
    TraceContext::read(parent, states.map(|states| states.join(",")).as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn read(all: &[(&'static str, &str)]) -> Option<(String, Option<String>)> {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(*name, value.parse().unwrap());
        }
        let context = context_of(&headers)?;
        Some((context.traceparent().to_owned(), context.tracestate().map(str::to_owned)))
    }

    #[test]
    fn a_request_has_one_context_or_none() {
        let (parent, state) = (("traceparent", PARENT), ("tracestate", "a=1"));
        assert_eq!(read(&[parent, state]), Some((PARENT.to_owned(), Some("a=1".to_owned()))));
        let divided = read(&[parent, state, ("tracestate", "b=2,c=3")]);
        assert_eq!(divided, Some((PARENT.to_owned(), Some("a=1,b=2,c=3".to_owned()))));
        assert_eq!(read(&[parent]), Some((PARENT.to_owned(), None)));
        assert_eq!(read(&[parent, parent]), None);
        assert_eq!(read(&[state]), None);
        assert_eq!(read(&[("traceparent", "00-1")]), None);
    }
}
