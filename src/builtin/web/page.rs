//! What a page says, for somebody who reads: its text, without what stands around it.

use std::iter::{from_fn, successors};

use dom_query::{Document, NodeRef};
use dom_smoothie::{Config, Readability, TextMode};
use encoding_rs::{Encoding, UTF_8};
use html5ever::tendril::TendrilSink;
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{ParseOpts, parse_document};

/// A page as it is read.
pub(super) struct Page {
    pub title: Option<String>,
    pub text: String,
}

/// More elements than any page that is read has.
const MOST_ELEMENTS: usize = 50_000;
/// Deeper than any page that is read nests: what walks a tree by calling itself must not be led too far.
const DEEPEST: usize = 500;
/// More elements and texts than are held at once.
const MOST_NODES: usize = 400_000;
/// So much of a page is read between two looks at its tree, in bytes.
const PIECE: usize = 4096;

/// The text of what a server sent, by what the server or the text itself says of its letters.
pub(super) fn decode(bytes: &[u8], content_type: &str) -> String {
    let charset = |part: &'_ str| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().to_owned())
    };
    let told = content_type.split(';').filter_map(charset).next_back();
    let within = || {
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(2048)]).to_ascii_lowercase();
        let rest = head.split_once("charset=")?.1.trim_start_matches(['"', '\'']).to_owned();
        Some(rest.split(['"', '\'', '>', ';', ' ', '/']).next()?.to_owned())
    };
    let label = told.map(|label| label.trim_matches('"').to_owned()).or_else(within);
    let encoding = label.and_then(|label| Encoding::for_label(label.as_bytes())).unwrap_or(UTF_8);
    // A mark at the beginning is believed before all else.
    encoding.decode(bytes).0.into_owned()
}

/// A page's text as Markdown: the article where there is one, else all of it.
pub(super) fn read(html: &str, url: &str) -> Page {
    let Some(document) = tree(pieces(html)) else { return Page { title: None, text: bare(html) } };
    let config = Config { text_mode: TextMode::Markdown, max_elements_to_parse: MOST_ELEMENTS, ..Config::default() };
    let article =
        Readability::with_document(document.clone(), Some(url), Some(config)).and_then(|mut page| page.parse());
    if let Ok(article) = article {
        let title = Some(article.title).filter(|title| !title.is_empty());
        return Page { title, text: article.text_content.trim().to_owned() };
    }
    let title = document.select("title").text().trim().to_owned();
    let text = document.body().map(|body| body.md(Some(&["script", "style", "noscript", "template"])).to_string());
    Page { title: Some(title).filter(|title| !title.is_empty()), text: text.unwrap_or_default().trim().to_owned() }
}

/// A page as a tree, as long as it is one that can be walked. Looked at while it grows: it takes few bytes to have tags opened
/// again and again, or within one another without end, and what a page says of its own closing tags is not to be believed.
fn tree<'h>(pieces: impl Iterator<Item = &'h str>) -> Option<Document> {
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let mut parser = parse_document(Document::default(), ParseOpts { tree_builder, ..ParseOpts::default() });
    for piece in pieces {
        parser.process(piece.into());
        let document = &parser.tokenizer.sink.sink;
        // What is open is the last of what is around it.
        let last = successors(Some(document.root()), NodeRef::last_child);
        if document.tree.len() > MOST_NODES || last.take(DEEPEST + 1).count() > DEEPEST {
            return None;
        }
    }
    let document = parser.finish();
    let is_deep = nests_deeply(&document);
    (!is_deep).then_some(document)
}

/// A text in pieces that end between letters.
fn pieces(mut rest: &str) -> impl Iterator<Item = &str> {
    from_fn(move || {
        let end = (0..=PIECE.min(rest.len())).rev().find(|at| rest.is_char_boundary(*at))?;
        let piece;
        (piece, rest) = rest.split_at(end);
        (!piece.is_empty()).then_some(piece)
    })
}

fn nests_deeply(document: &Document) -> bool {
    let mut open = vec![(document.root(), 0)];
    while let Some((node, depth)) = open.pop() {
        if depth > DEEPEST {
            return true;
        }
        open.extend(node.children_it(false).map(|child| (child, depth + 1)));
    }
    false
}

/// What is left of a page without its tags.
fn bare(html: &str) -> String {
    let mut text = String::new();
    for piece in html.split('<') {
        text.push_str(piece.split_once('>').map_or("", |(_, after)| after));
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::iter::repeat_n;

    use super::*;

    /// How many pieces of a page are read before it is given up.
    fn read_of(piece: &str) -> usize {
        let mut read = 0;
        assert!(tree(repeat_n(piece, 5).inspect(|_| read += 1)).is_none());
        read
    }

    #[test]
    fn a_page_that_grows_too_much_is_given_up_where_it_does() {
        assert_eq!(read_of(&"<div>".repeat(DEEPEST + 1)), 1);
        // An element and its text each time.
        assert_eq!(read_of(&"<p>x".repeat(MOST_NODES / 4)), 2);
    }

    #[test]
    fn a_page_is_too_deep_in_what_it_has_closed_again_too() {
        let page = |depth| "<q>".repeat(depth) + &"</q>".repeat(depth) + "<p>after";
        assert_eq!(pieces(&page(DEEPEST)).count(), 1, "nobody looks at it half read");
        assert!(tree(pieces(&page(DEEPEST))).is_none());
        assert!(tree(pieces(&page(DEEPEST - 10))).is_some());
    }

    #[test]
    fn a_page_in_pieces_is_whole() {
        let page = "é".repeat(PIECE) + "end";
        assert!(pieces(&page).all(|piece| piece.len() <= PIECE));
        assert_eq!(pieces(&page).collect::<String>(), page);
    }
}
