//! The readable text of a page, without navigation and advertisements.

use std::iter::{from_fn, successors};

use dom_query::{Document, NodeRef};
use dom_smoothie::{Config, Readability, TextMode};
use encoding_rs::{Encoding, UTF_8};
use html5ever::tendril::TendrilSink;
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{ParseOpts, parse_document};

use crate::words::on_one_line;

/// A readable page.
pub(super) struct Page {
    pub title: Option<String>,
    pub text: String,
}

/// The most elements that the article search looks at.
const MOST_ELEMENTS: usize = 50_000;
/// The deepest nesting: code that walks the tree recursively must not overflow the stack.
const DEEPEST: usize = 500;
/// The most nodes that are held in memory.
const MOST_NODES: usize = 400_000;
/// How much of a page is parsed between two checks of its tree, in bytes.
const PIECE: usize = 4096;

/// Decodes a body by the encoding that the server or the text itself declares.
pub(super) fn decode(bytes: &[u8], content_type: &str) -> String {
    let charset = |part: &'_ str| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().to_owned())
    };
    let declared = content_type.split(';').filter_map(charset).next_back();
    let within = || {
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(2048)]).to_ascii_lowercase();
        let rest = head.split_once("charset=")?.1.trim_start_matches(['"', '\'']).to_owned();
        Some(rest.split(['"', '\'', '>', ';', ' ', '/']).next()?.to_owned())
    };
    let label = declared.map(|label| label.trim_matches('"').to_owned()).or_else(within);
    let encoding = label.and_then(|label| Encoding::for_label(label.as_bytes())).unwrap_or(UTF_8);
    // A byte order mark takes precedence.
    encoding.decode(bytes).0.into_owned()
}

/// A page as Markdown: its article, or all of it.
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

/// A page as a tree, unless it is too large or too deep to walk. It is checked while it grows, because a few bytes can open a great
/// many elements.
fn tree<'h>(pieces: impl Iterator<Item = &'h str>) -> Option<Document> {
    let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let mut parser = parse_document(Document::default(), ParseOpts { tree_builder, ..ParseOpts::default() });
    for piece in pieces {
        parser.process(piece.into());
        let document = &parser.tokenizer.sink.sink;
        // Open elements are the last children of their parents.
        let last = successors(Some(document.root()), NodeRef::last_child);
        if document.tree.len() > MOST_NODES || last.take(DEEPEST + 1).count() > DEEPEST {
            return None;
        }
    }
    let document = parser.finish();
    let is_deep = nests_deeply(&document);
    (!is_deep).then_some(document)
}

/// A text in pieces that end between characters.
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

/// A page without its tags.
fn bare(html: &str) -> String {
    let mut text = String::new();
    for piece in html.split('<') {
        text.push_str(piece.split_once('>').map_or("", |(_, after)| after));
    }
    on_one_line(&text)
}

#[cfg(test)]
mod tests {
    use std::iter::repeat_n;

    use super::*;

    /// How many pieces of a page are parsed before it is refused.
    fn read_of(piece: &str) -> usize {
        let mut read = 0;
        assert!(tree(repeat_n(piece, 5).inspect(|_| read += 1)).is_none());
        read
    }

    #[test]
    fn a_page_that_grows_too_large_is_refused_early() {
        assert_eq!(read_of(&"<div>".repeat(DEEPEST + 1)), 1);
        // An element and its text each time.
        assert_eq!(read_of(&"<p>x".repeat(MOST_NODES / 4)), 2);
    }

    #[test]
    fn closed_elements_count_as_depth_too() {
        let page = |depth| "<q>".repeat(depth) + &"</q>".repeat(depth) + "<p>after";
        assert_eq!(pieces(&page(DEEPEST)).count(), 1, "it is checked only as a whole");
        assert!(tree(pieces(&page(DEEPEST))).is_none());
        assert!(tree(pieces(&page(DEEPEST - 10))).is_some());
    }

    #[test]
    fn pieces_together_are_the_page() {
        let page = "é".repeat(PIECE) + "end";
        assert!(pieces(&page).all(|piece| piece.len() <= PIECE));
        assert_eq!(pieces(&page).collect::<String>(), page);
    }
}
