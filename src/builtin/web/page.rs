//! What a page says, for somebody who reads: its text, without what stands around it.

use dom_query::Document;
use dom_smoothie::{Config, Readability, TextMode};
use encoding_rs::{Encoding, UTF_8};

/// A page as it is read.
pub(super) struct Page {
    pub title: Option<String>,
    pub text: String,
}

/// More elements than any page that is read has.
const MOST_ELEMENTS: usize = 50_000;
/// Deeper than any page that is read nests: what walks a tree by calling itself must not be led too far.
const DEEPEST: usize = 500;

/// The text of what a server sent, by what the server or the text itself says of its letters.
pub(super) fn decode(bytes: &[u8], content_type: &str) -> String {
    let told = content_type.split(';').filter_map(|part| part.trim().strip_prefix("charset=")).next_back();
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
    if nests_deeply(html) {
        return Page { title: None, text: bare(html) };
    }
    let config = Config { text_mode: TextMode::Markdown, max_elements_to_parse: MOST_ELEMENTS, ..Config::default() };
    let article = Readability::new(html, Some(url), Some(config)).and_then(|mut page| page.parse());
    if let Ok(article) = article {
        let title = Some(article.title).filter(|title| !title.is_empty());
        return Page { title, text: article.text_content.trim().to_owned() };
    }
    let document = Document::from(html);
    let title = document.select("title").text().trim().to_owned();
    let text = document.body().map(|body| body.md(Some(&["script", "style", "noscript", "template"])).to_string());
    Page { title: Some(title).filter(|title| !title.is_empty()), text: text.unwrap_or_default().trim().to_owned() }
}

/// Whether tags are opened within one another further than anybody writes them.
fn nests_deeply(html: &str) -> bool {
    const VOID: [&str; 12] = ["br", "img", "hr", "meta", "link", "input", "source", "area", "col", "wbr", "p", "li"];
    let mut depth = 0_usize;
    for (at, _) in html.match_indices('<') {
        let rest = &html[at + 1..];
        let name: String = rest.chars().take_while(char::is_ascii_alphanumeric).take(12).collect();
        if rest.starts_with('/') {
            depth = depth.saturating_sub(1);
        } else if !name.is_empty() && !VOID.contains(&name.to_ascii_lowercase().as_str()) {
            depth += 1;
        }
        if depth > DEEPEST {
            return true;
        }
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
