use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use super::client::{MOST, Response};
use super::search::found;
use super::{Allowed, client, fetch, is_private, page};
use crate::builtin::Stop;
use crate::builtin::testing::Bench;
use crate::config::builtin::SearchProvider;
use crate::outcome::Code;

/// A server that answers each path as given; returns its address.
fn server(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let Some(first) = lines.next() else { continue };
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
            let _ = stream.write_all(&answer(&path));
        }
    });
    place
}

fn response(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let length = body.as_ref().len();
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n");
    [head.as_bytes(), body.as_ref()].concat()
}

fn page_of(path: &str) -> Vec<u8> {
    match path {
        "/article" => {
            let body = "<html><head><title>On bells</title></head><body><nav>Menu Menu</nav><article><h1>On bells</h1>".to_owned()
                + &"<p>A bell rings when it is struck, and <b>this</b> sentence is long enough to be read, with a comma.</p>".repeat(8)
                + "</article><script>alert(1)</script></body></html>";
            response("200 OK", "content-type: text/html; charset=utf-8\r\n", body)
        }
        "/latin" => response("200 OK", "content-type: text/plain; charset=latin1\r\n", b"na\xefve"),
        "/json" | "/json?next=https://example.com/" => {
            response("200 OK", "content-type: application/json\r\n", r#"{"a": 1}"#)
        }
        "/picture" => response("200 OK", "content-type: image/png\r\n", b"\x89PNG\0\0"),
        "/large" => response("200 OK", "content-type: text/plain\r\n", vec![b'x'; (5 << 20) + 1]),
        "/moved/here" => response("302 Found", "location: ../article\r\n", ""),
        "/moved" => response("302 Found", "location: /json\r\n", ""),
        "/login" => response("302 Found", "location: /json?next=https://example.com/\r\n", ""),
        "/round" => response("302 Found", "location: /round\r\n", ""),
        "/metadata" => response("302 Found", "location: http://169.254.169.254/latest/meta-data/\r\n", ""),
        "/list/all?page=1" => response("302 Found", "location: ?page=2\r\n", ""),
        "/odd" => response("302 Found", "location: naïve page?a[b]=1#part\r\n", ""),
        "/credentials" => response("302 Found", "location: http://me:secret@127.0.0.1/\r\n", ""),
        "/nowhere" => response("302 Found", "content-type: text/plain\r\n", "no address"),
        "/file" => response("302 Found", "location: file:///etc/passwd\r\n", ""),
        _ => response("404 Not Found", "content-type: text/plain\r\n", "nothing here"),
    }
}

fn bench(allowed: &[&str]) -> Bench {
    let allowed: Vec<String> = allowed.iter().map(|&name| name.to_owned()).collect();
    Bench::of(move |tools, _| tools.register(fetch::FetchUrl(client::Web::allowing(Allowed::new(&allowed)))))
}

fn url(place: &str, path: &str) -> Value {
    json!({"url": format!("{place}{path}")})
}

#[tokio::test]
async fn a_page_is_returned_as_readable_text() {
    let (place, bench) = (server(page_of), bench(&["127.0.0.1"]));
    let read = bench.call("fetch_url", url(&place, "/article")).await.unwrap();
    let text = read["content"].as_str().unwrap();
    assert!(text.contains("**this** sentence") && !text.contains("Menu") && !text.contains("alert"), "{text}");
    assert_eq!((&read["title"], &read["status"]), (&json!("On bells"), &json!(200)));
    let raw = json!({"url": format!("{place}/article"), "form": "raw", "limit": 20});
    let raw = bench.call("fetch_url", raw).await.unwrap();
    assert_eq!((&raw["content"], &raw["next_offset"]), (&json!("<html><head><title>O"), &json!(20)));
    assert_eq!(bench.call("fetch_url", url(&place, "/latin")).await.unwrap()["content"], "naïve");
    assert_eq!(bench.call("fetch_url", url(&place, "/json")).await.unwrap()["content"], r#"{"a": 1}"#);
    let absent = bench.call("fetch_url", url(&place, "/absent")).await.unwrap();
    assert_eq!((&absent["status"], &absent["content"]), (&json!(404), &json!("nothing here")), "a result all the same");
    bench.fails("fetch_url", url(&place, "/picture"), Code::ToolError, "image/png").await;
    bench.fails("fetch_url", url(&place, "/large"), Code::ToolError, "5 MB").await;
}

#[test]
fn a_body_is_read_up_to_the_limit() {
    struct Breaks;
    impl std::io::Read for Breaks {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("too much was read"))
        }
    }
    let body = |bytes: usize| std::io::Read::take(std::io::repeat(b'x'), bytes as u64);
    let stop = Stop::default();
    let (bytes, is_cut) = client::read(std::io::Read::chain(body(MOST + (64 << 10)), Breaks), &stop).unwrap();
    assert_eq!((bytes.len(), is_cut), (MOST, true));
    let (bytes, is_cut) = client::read(body(MOST), &stop).unwrap();
    assert_eq!((bytes.len(), is_cut), (MOST, false), "so much is taken");
    stop.set();
    assert!(
        client::read(std::io::Read::chain(body(64 << 10), Breaks), &stop).is_ok(),
        "a cancelled call does not read the rest"
    );
}

#[tokio::test]
async fn redirects_are_followed_and_each_is_checked() {
    let (place, bench) = (server(page_of), bench(&["127.0.0.1"]));
    let moved = bench.call("fetch_url", url(&place, "/moved")).await.unwrap();
    assert_eq!(moved["url"], format!("{place}/json"));
    let denied = Code::PermissionDenied;
    bench.fails("fetch_url", url(&place, "/metadata"), denied, "169.254.169.254").await;
    let login = bench.call("fetch_url", url(&place, "/login")).await.unwrap();
    assert!(login["url"].as_str().unwrap().ends_with("/json?next=https://example.com/"), "{login}");
    bench.fails("fetch_url", url(&place, "/round"), Code::ToolError, "5 redirects").await;
    bench.fails("fetch_url", url(&place, "/file"), Code::InvalidParams, "expected http or https").await;
    let (_, message) = bench.fault("fetch_url", url(&place, "/credentials")).await;
    assert!(message.contains("contains credentials") && !message.contains("secret"), "{message}");
    let stays = bench.call("fetch_url", url(&place, "/nowhere")).await.unwrap();
    assert_eq!((&stays["status"], &stays["content"]), (&json!(302), &json!("no address")));
    for (path, end) in [
        ("/list/all?page=1", "/list/all?page=2"),
        ("/moved/here", "/article"),
        ("/odd", "/na%C3%AFve%20page?a%5Bb%5D=1"),
    ] {
        let page = bench.call("fetch_url", url(&place, path)).await.unwrap();
        assert_eq!(page["url"], format!("{place}{end}"), "{path}");
    }
}

#[test]
fn a_key_is_sent_to_its_origin_only() {
    let recording = |place: &str, next: String| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let listener = TcpListener::bind(place).unwrap();
        let own = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                let _ = sender.send(head.iter().any(|line| line.contains("s3cret")));
                let moved = response("302 Found", &format!("location: {next}\r\n"), "");
                let here = response("200 OK", "content-type: text/plain\r\n", "here");
                let is_first = head[0].contains("/first");
                let _ = stream.write_all(if is_first { &moved } else { &here });
            }
        });
        (own, receiver)
    };
    let web = client::Web::allowing(Allowed::new(&["127.0.0.1".to_owned()]));
    let get = |url: String| {
        let headers = [("x-token", "s3cret")];
        web.get(&url, &headers, std::time::Duration::from_secs(10), &Stop::default()).unwrap()
    };
    let (other, got_other) = recording("127.0.0.1:0", String::new());
    let (first, got_first) = recording("127.0.0.1:0", format!("{other}/x"));
    assert_eq!(get(format!("{first}/first")).status, 302);
    assert!(got_first.recv().unwrap() && got_other.try_recv().is_err(), "no redirect is followed");
}

#[tokio::test]
async fn no_private_address_is_reached_by_any_name() {
    let (place, bench) = (server(|_| panic!("nothing may connect here")), bench(&[]));
    let port = place.rsplit(':').next().unwrap();
    for host in
        ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "127.1", "2130706433", "0x7f000001", "[::ffff:127.0.0.1]"]
    {
        let (code, message) = bench.fault("fetch_url", json!({"url": format!("http://{host}:{port}/")})).await;
        assert!(code != Code::ToolTimeout, "{host}: {message}");
        assert!(message.contains("private network") || message.contains("host not found"), "{host}: {message}");
    }
    for (wrong, words) in [
        ("ftp://example.com/", "expected http or https"),
        ("example.com", "does not begin with https://"),
        ("http://me:secret@example.com/", "contains credentials"),
        ("http:///x", "cannot fetch"),
    ] {
        let (code, message) = bench.fault("fetch_url", json!({"url": wrong})).await;
        assert!(
            code == Code::InvalidParams && message.contains(words) && !message.contains("secret"),
            "{wrong}: {message}"
        );
    }
}

#[test]
fn malformed_pages_are_read_too() {
    let deep = "<div>".repeat(200_000) + "deep";
    assert_eq!(page::read(&deep, "http://x/").text, "deep");
    // What pages say of their own closing tags: of none that is open, of one that cannot be closed here, in a comment.
    for open in ["<div></x>", "<div><object></div></object>", "<div><!--</div>-->"] {
        assert!(page::read(&(open.repeat(60_000) + "deep"), "http://x/").text.ends_with("deep"), "{open}");
    }
    // Each paragraph opens all of these again.
    let again = (0..300).map(|number| format!("<b id={number}>")).collect::<Vec<_>>().concat();
    assert!(page::read(&("<p>".to_owned() + &again + &"<p>x".repeat(20_000)), "http://x/").text.ends_with('x'));
    let nested = "<div>".repeat(490) + "inner" + &"</div>".repeat(490);
    assert!(page::read(&nested, "http://x/").text.contains("inner"));
    let wide = "<p>word</p>".repeat(60_000);
    assert!(page::read(&wide, "http://x/").text.contains("word"));
    let article = String::from_utf8(page_of("/article")).unwrap();
    let article = article.split_once("\r\n\r\n").unwrap().1;
    assert!(!page::read(article, "http://x/").text.contains("Menu"));
    let text = page::read(&article.replace("</body>", &"<i></i>".repeat(60_000)), "http://x/").text;
    assert!(text.contains("Menu") && text.contains("**this**"), "no article is searched for in so many elements");
    for odd in ["", "<", "<a <b <c", "</div></div>", "<table><p><table>", "\u{0}<svg><math>"] {
        page::read(odd, "http://x/");
    }
    let in_page = page::decode(b"<meta charset=\"latin1\">na\xefve", "text/html");
    assert!(in_page.ends_with("naïve"), "{in_page}");
    assert_eq!(page::decode(b"na\xefve", "text/plain; Charset = latin1"), "naïve");
}

fn answered(body: &str) -> Response {
    let url = "https://search.example/?q=x".to_owned();
    Response { url, status: 200, content_type: "text/html".to_owned(), body: body.into(), is_cut: false }
}

#[test]
fn the_responses_of_providers_are_parsed() {
    let page = r#"<div class="result results_links"><h2><a class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2Fx%3Fy%3D1&amp;rut=z">One <b>bell</b></a></h2>
        <a class="result__snippet" href="x">It <b>rings</b>.</a></div>
        <div class="result result--ad"><a class="result__a" href="https://ad.example">Buy</a></div>
        <div class="result"><a class="result__a" href="https://b.example/">Two</a></div>"#;
    let hits = serde_json::to_value(found(SearchProvider::DuckDuckGo, &answered(page)).unwrap()).unwrap();
    assert_eq!(
        hits,
        json!([
            {"title": "One bell", "url": "https://a.example/x?y=1", "text": "It rings."},
            {"title": "Two", "url": "https://b.example/", "text": ""}
        ])
    );
    let list =
        json!({"results": [{"title": "T", "url": "https://c.example", "content": "says"}, {"title": "no address"}]});
    let hits = serde_json::to_value(found(SearchProvider::SearXng, &answered(&list.to_string())).unwrap()).unwrap();
    assert_eq!(hits, json!([{"title": "T", "url": "https://c.example", "text": "says"}]));
    let brave = json!({"web": {"results": [{"title": "T", "url": "https://d.example", "description": "<strong>a</strong> &amp; b"}]}});
    let hits = serde_json::to_value(found(SearchProvider::Brave, &answered(&brave.to_string())).unwrap()).unwrap();
    assert_eq!(hits[0]["text"], "a & b");
}

#[test]
fn an_unusable_response_is_reported() {
    let wrong = |provider, answer: &Response| found(provider, answer).unwrap_err().message;
    assert!(wrong(SearchProvider::DuckDuckGo, &answered("<p>Are you human?")).contains("CAPTCHA"));
    assert!(wrong(SearchProvider::SearXng, &answered("<html>")).contains("search.formats"));
    let busy = Response { status: 429, ..answered("") };
    let message = wrong(SearchProvider::Brave, &busy);
    assert!(message.starts_with("search.example did not answer the search (status 429)"), "{message}");
    let moved = Response { status: 301, ..answered("") };
    assert!(wrong(SearchProvider::Brave, &moved).contains("set `url` under [builtin.web_search]"));
    assert!(found(SearchProvider::DuckDuckGo, &answered("<div class='no-results'>")).unwrap().is_empty());
}

#[test]
fn addresses_outside_the_public_internet_are_private() {
    for address in [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.9.9",
        "192.168.1.1",
        "169.254.169.254",
        "0.0.0.0",
        "100.64.0.1",
        "198.18.0.1",
        "192.0.0.8",
        "224.0.0.1",
        "255.255.255.255",
        "203.0.113.5",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "fd12::1",
        "ff02::1",
        "fec0::1",
        "2001:db8::1",
        "2001:0:1::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::7f00:1",
        "64:ff9b::a00:1",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
    ] {
        assert!(is_private(address.parse().unwrap()), "{address}");
    }
    for address in
        ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
    {
        assert!(!is_private(address.parse().unwrap()), "{address}");
    }
}

#[test]
fn only_listed_private_addresses_are_allowed() {
    let names = ["Wiki.Internal", "10.1.0.0/16", "127.0.0.1", "fd12::/16"].map(str::to_owned);
    let allowed = Allowed::new(&names);
    let admits = |host: &str, address: &str| allowed.admits(host, address.parse().unwrap());
    assert!(admits("wiki.internal", "192.168.0.9") && admits("x", "10.1.255.1") && admits("x", "127.0.0.1"));
    assert!(admits("x", "::ffff:10.1.2.3") && admits("x", "fd12:1::1") && admits("x", "9.9.9.9"));
    assert!(!admits("other", "192.168.0.9") && !admits("x", "10.2.0.1") && !admits("x", "127.0.0.2"));
    assert!(!admits("x", "fd13::1"));
}
