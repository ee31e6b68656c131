//! `web_search`, by the configured provider.

use std::borrow::Cow;
use std::time::Duration;

use dom_query::Document;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Allowed;
use super::client::{Response, Web};
use super::page;
use crate::builtin::{About, Builtin, Call};
use crate::config::builtin::{BuiltinSettings, SearchProvider};
use crate::config::declared_policy::Risk;
use crate::outcome::{Code, Fault};
use crate::words::on_one_line;

pub(super) struct WebSearch {
    web: Web,
    provider: SearchProvider,
    url: Option<String>,
}

/// The secret with Brave's API key.
const BRAVE_KEY: &str = "BRAVE_API_KEY";

/// The secret that the provider in force needs.
pub fn key(settings: &BuiltinSettings) -> Option<&'static str> {
    let provider = settings.search.as_ref()?.value;
    (provider == SearchProvider::Brave).then_some(BRAVE_KEY)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Params {
    /// The query.
    #[schemars(length(min = 1))]
    pub query: String,
    /// The most results.
    #[serde(default = "usual")]
    #[schemars(range(min = 1, max = 20))]
    pub count: usize,
}

fn usual() -> usize {
    10
}

#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Hit {
    /// The page's title.
    pub title: String,
    /// Its address, for `fetch_url`.
    pub url: String,
    /// An excerpt.
    pub text: String,
}

const LIMIT: Duration = Duration::from_secs(30);

impl WebSearch {
    pub fn of(layer: &BuiltinSettings, proxy: Option<&str>) -> Self {
        let url = layer.search_url.as_ref().map(|url| url.value.clone());
        // A configured instance may be in a private network.
        let host = url.as_deref().and_then(|url| url.parse::<ureq::http::Uri>().ok()?.host().map(str::to_owned));
        let allowed = host.map(|host| Allowed::new(&[host])).unwrap_or_default();
        Self {
            web: Web::allowing(allowed).through(proxy),
            provider: layer.search.as_ref().map_or(SearchProvider::DuckDuckGo, |provider| provider.value),
            url,
        }
    }

    fn address(&self, params: &Params) -> Result<String, Fault> {
        let query = utf8_percent_encode(&params.query, NON_ALPHANUMERIC);
        let own = self.url.as_deref().map(|url| url.trim_end_matches('/'));
        Ok(match self.provider {
            SearchProvider::DuckDuckGo => format!("{}/html/?q={query}", own.unwrap_or("https://html.duckduckgo.com")),
            SearchProvider::Brave => format!(
                "{}/res/v1/web/search?q={query}&count={}",
                own.unwrap_or("https://api.search.brave.com"),
                params.count
            ),
            SearchProvider::SearXng => {
                let own = own.ok_or_else(|| {
                    let message =
                        "no SearXNG instance is configured; set its `url` under [builtin.web_search] in hostler.toml";
                    Fault::new(Code::ToolError, message)
                })?;
                format!("{own}/search?q={query}&format=json")
            }
        })
    }
}

impl Builtin for WebSearch {
    type Params = Params;
    type Answer = Vec<Hit>;

    fn about(&self) -> About {
        About::new("web_search", "Search the web; returns titles, addresses and excerpts.")
            .reads("network", Risk::Medium)
            .timeout(LIMIT)
    }

    async fn call(&self, params: Params, call: Call) -> Result<Vec<Hit>, Fault> {
        let address = self.address(&params)?;
        let key = match self.provider {
            SearchProvider::Brave => Some(call.secret(BRAVE_KEY).await?.ok_or_else(no_key)?),
            _ => None,
        };
        let (web, provider, limit) = (self.web.clone(), self.provider, call.timeout);
        let mut hits = call
            .blocking(move |stop| {
                let headers: Vec<(&str, &str)> = key.iter().map(|key| ("x-subscription-token", key.as_str())).collect();
                let answer = web.get(&address, &headers, limit, stop)?;
                found(provider, &answer)
            })
            .await?;
        hits.truncate(params.count);
        Ok(hits)
    }
}

fn no_key() -> Fault {
    let message = format!(
        "{BRAVE_KEY} is not set; put the key into a file that only you can read, and add to [secrets] in hostler.toml: \
         {BRAVE_KEY} = {{ file = \"/path/to/file\" }}"
    );
    Fault::new(Code::MissingCredentials, message)
}

/// The hits in a provider's response.
pub(super) fn found(provider: SearchProvider, answer: &Response) -> Result<Vec<Hit>, Fault> {
    let failed = |why: &str| {
        let host = answer.url.split('/').nth(2).unwrap_or_default();
        let message = format!(
            "{host} did not answer the search ({why}); try again later, or set another `provider` under [builtin.web_search] in \
             hostler.toml"
        );
        Fault::new(Code::ToolError, message)
    };
    if (300..400).contains(&answer.status) {
        let host = answer.url.split('/').nth(2).unwrap_or_default();
        let message = format!(
            "{host} redirects the search (status {}); set `url` under [builtin.web_search] in hostler.toml to the final address",
            answer.status
        );
        return Err(Fault::new(Code::ToolError, message));
    }
    if answer.status != 200 {
        return Err(failed(&format!("status {}", answer.status)));
    }
    let text = page::decode(&answer.body, &answer.content_type);
    match provider {
        SearchProvider::DuckDuckGo => {
            let hits = of_page(&text);
            if hits.is_empty() && !text.contains("no-results") {
                return Err(failed("it requires a CAPTCHA"));
            }
            Ok(hits)
        }
        SearchProvider::SearXng => of_list(&text, "/results", "content")
            .ok_or_else(|| failed("the response is not JSON; enable `json` in search.formats of the instance")),
        SearchProvider::Brave => {
            of_list(&text, "/web/results", "description").ok_or_else(|| failed("the response is not JSON"))
        }
    }
}

fn of_list(text: &str, place: &str, about: &str) -> Option<Vec<Hit>> {
    let value: Value = serde_json::from_str(text).ok()?;
    let word = |hit: &Value, key: &str| hit[key].as_str().unwrap_or_default().trim().to_owned();
    let hits = value.pointer(place).and_then(Value::as_array).into_iter().flatten();
    let hit =
        |hit: &Value| Hit { title: plain(&word(hit, "title")), url: word(hit, "url"), text: plain(&word(hit, about)) };
    Some(hits.map(hit).filter(|hit| !hit.url.is_empty()).collect())
}

/// A text without markup around the searched words.
fn plain(text: &str) -> String {
    if text.contains('<') || text.contains('&') {
        Document::from(text).text().trim().to_owned()
    } else {
        text.to_owned()
    }
}

/// Parses the page for browsers without scripts.
fn of_page(html: &str) -> Vec<Hit> {
    let document = Document::from(html);
    let hit = |result: dom_query::Selection<'_>| {
        let link = result.select("a.result__a");
        let url = target(&link.attr_or("href", ""))?;
        let text = on_one_line(&result.select(".result__snippet").text());
        Some(Hit { title: on_one_line(&link.text()), url, text })
    };
    let results = document.select(".result");
    results.iter().filter(|result| !result.has_class("result--ad")).filter_map(hit).collect()
}

/// The target of a link, which is wrapped into a redirect.
fn target(link: &str) -> Option<String> {
    let wrapped = link.split_once("uddg=").map(|(_, rest)| rest.split('&').next().unwrap_or(rest));
    let url = wrapped.map_or(Cow::Borrowed(link), |url| percent_decode_str(url).decode_utf8_lossy());
    url.starts_with("http").then(|| url.into_owned())
}
