//! Which hosts are reached, and a real proxy between a client and servers on this machine.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use super::allowed::{AllowedHosts, CLOSED, Refusal};
use super::proxy::Proxy;

fn lists(lists: &[&[&str]]) -> AllowedHosts {
    AllowedHosts(lists.iter().map(|list| list.iter().map(|text| text.parse().unwrap()).collect()).collect())
}

fn list(patterns: &[&str]) -> AllowedHosts {
    lists(&[patterns])
}

#[test]
fn a_host_is_admitted_by_its_name_or_address_and_port() {
    let allowed = list(&["api.example.com", "*.cdn.example", "10.1.0.0/16", "[::1]:80", "localhost:8080"]);
    for (host, port) in [
        ("api.example.com", 443),
        ("API.Example.Com.", 22),
        ("a.b.cdn.example", 443),
        ("10.1.200.3", 80),
        ("::ffff:10.1.2.3", 80),
        ("[::1]", 80),
        ("localhost", 8080),
    ] {
        assert_eq!(allowed.admit(host, port), Ok(()), "{host}:{port}");
    }
    for (host, port) in [
        ("example.com", 443),
        ("xapi.example.com", 443),
        ("api.example.com.evil.org", 443),
        ("cdn.example", 443),
        (".cdn.example", 443),
        ("10.2.0.1", 80),
        ("::1", 81),
        ("localhost", 80),
        ("127.0.0.1", 8080),
        ("2130706433", 8080),
        ("0x7f000001", 8080),
        ("127.1", 8080),
        ("", 80),
    ] {
        assert_eq!(allowed.admit(host, port), Err(Refusal::NotListed), "{host}:{port}");
    }
}

#[test]
fn a_name_leads_to_private_addresses_only_if_they_are_listed() {
    let allowed = list(&["db.example", "10.1.2.3:5432", "localhost"]);
    let admits =
        |host: &str, address: &str, port| allowed.admit_address(host, address.parse::<IpAddr>().unwrap(), port).is_ok();
    assert!(admits("db.example", "93.184.216.34", 5432) && admits("db.example", "10.1.2.3", 5432));
    assert!(admits("localhost", "127.0.0.1", 1) && admits("localhost.", "::1", 1));
    for address in [
        "10.1.2.4",
        "169.254.169.254",
        "127.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "0.0.0.0",
        "fd00::1",
        "64:ff9b::a9fe:a9fe",
    ] {
        assert!(!admits("db.example", address, 5432), "{address}");
    }
    assert!(!admits("db.example", "10.1.2.3", 80), "of another port");
    assert!(!admits("localhost", "10.1.2.4", 80));
}

#[test]
fn every_list_has_to_have_it() {
    let allowed = lists(&[&["a.example", "b.example", "10.0.0.0/8"], &["b.example", "c.example", "10.1.0.0/16"]]);
    assert_eq!(allowed.admit("b.example", 443), Ok(()));
    for host in ["a.example", "c.example", "10.2.0.1"] {
        assert_eq!(allowed.admit(host, 443), Err(Refusal::NotListed), "{host}");
    }
    let private = |address: [u8; 4]| allowed.admit_address("b.example", IpAddr::from(address), 443).is_err();
    assert!(private([10, 2, 0, 1]) && !private([10, 1, 0, 1]));
    assert_eq!(list(&[]).admit("a.example", 443), Err(Refusal::NotListed), "an empty list has nothing");
}

/// A server that answers every connection with what it heard of the first head, and then with what follows.
fn echo() -> SocketAddr {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in socket.incoming().flatten() {
            thread::spawn(move || {
                let heard = head(&mut stream);
                let answer =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{heard}", heard.len());
                let _ = stream.write_all(answer.as_bytes());
            });
        }
    });
    address
}

fn head(stream: &mut TcpStream) -> String {
    let mut heard = Vec::new();
    let mut byte = [0];
    while !heard.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
        heard.push(byte[0]);
    }
    String::from_utf8_lossy(&heard).into_owned()
}

/// A proxy, and what it says to a client that sends something and reads to the end.
async fn through(allowed: &[&str], sent: String) -> String {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let proxy = Proxy::serve(socket, Arc::new(list(allowed))).unwrap();
    let said = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(sent.as_bytes()).unwrap();
        let mut said = String::new();
        let _ = stream.read_to_string(&mut said);
        said
    });
    let said = said.await.unwrap();
    drop(proxy);
    said
}

#[tokio::test]
async fn a_connection_to_a_listed_host_is_opened() {
    let server = echo();
    let sent = format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\nGET /inner HTTP/1.1\r\n\r\n");
    let said = through(&["127.0.0.1"], sent).await;
    assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
    assert!(said.ends_with("GET /inner HTTP/1.1\r\n\r\n"), "{said}");
}

#[tokio::test]
async fn a_plain_request_is_forwarded_as_its_host_wants_it() {
    let server = echo();
    let sent = format!(
        "GET http://me:secret@{server}/path?q=1 HTTP/1.1\r\nHost: other.example\r\nProxy-Authorization: Basic x\r\n\
         X-Of-Hop: 1\r\nConnection: close, X-Of-Hop\r\nX-Kept: 2\r\n\r\n"
    );
    let said = through(&["127.0.0.1"], sent).await.to_lowercase();
    assert!(said.starts_with("http/1.1 200 ok\r\n"), "{said}");
    assert!(said.contains("get /path?q=1 http/1.1\r\n") && said.contains(&format!("host: {server}\r\n")), "{said}");
    assert!(said.contains("x-kept: 2"), "{said}");
    for gone in ["other.example", "proxy-authorization", "x-of-hop: 1", "secret"] {
        assert!(!said.contains(gone), "{gone}: {said}");
    }
}

#[tokio::test]
async fn what_is_not_listed_is_refused_with_its_name() {
    let server = echo();
    let port = server.port();
    for (allowed, request, status) in [
        (&["127.0.0.2"][..], format!("CONNECT {server} HTTP/1.1"), 403),
        (&["127.0.0.1:1"], format!("CONNECT {server} HTTP/1.1"), 403),
        (&["*.example"], format!("GET http://{server}/ HTTP/1.1"), 403),
        (&["127.0.0.1"], format!("CONNECT 2130706433:{port} HTTP/1.1"), 403),
        (&["127.0.0.1"], format!("CONNECT 0x7f.1:{port} HTTP/1.1"), 403),
        (&["127.0.0.1"], format!("CONNECT localhost:{port} HTTP/1.1"), 403),
        (&["127.0.0.1"], format!("CONNECT [::ffff:127.0.0.2]:{port} HTTP/1.1"), 403),
        (&["127.0.0.1"], "GET / HTTP/1.1".to_owned(), 400),
        (&["127.0.0.1"], format!("GET https://{server}/ HTTP/1.1"), 400),
        (&["127.0.0.1"], "CONNECT 127.0.0.1 HTTP/1.1".to_owned(), 400),
        (&["name.invalid"], "CONNECT name.invalid:80 HTTP/1.1".to_owned(), 502),
    ] {
        let said = through(allowed, format!("{request}\r\nHost: {server}\r\nConnection: close\r\n\r\n")).await;
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {said}");
        assert_eq!(said.contains(CLOSED), status == 403, "{request}: {said}");
        assert!(!said.contains("127.0.0.1:1 ") && !said.contains("GET /inner"), "{said}");
    }
}

#[tokio::test]
async fn a_redirect_is_another_request() {
    // The client follows it, through the proxy: what it leads to is asked for like the first.
    let server = echo();
    let sent = format!(
        "GET http://{server}/a HTTP/1.1\r\nHost: {server}\r\n\r\nGET http://127.0.0.2:{}/b HTTP/1.1\r\nHost: x\r\n\
         Connection: close\r\n\r\n",
        server.port()
    );
    let said = through(&["127.0.0.1"], sent).await;
    let statuses: Vec<&str> = said.lines().filter(|line| line.starts_with("HTTP/1.1 ")).collect();
    assert_eq!(statuses.len(), 2, "{said}");
    assert!(statuses[0].starts_with("HTTP/1.1 200") && statuses[1].starts_with("HTTP/1.1 403"), "{said}");
}

#[tokio::test]
async fn connections_end_with_their_proxy() {
    let server = echo();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let proxy = Proxy::serve(socket, Arc::new(list(&["127.0.0.1"]))).unwrap();
    let opened = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(format!("CONNECT {server} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
        (head(&mut stream), stream)
    });
    let (said, mut stream) = opened.await.unwrap();
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    drop(proxy);
    let ended = tokio::task::spawn_blocking(move || stream.read(&mut [0]));
    assert!(matches!(ended.await.unwrap(), Ok(0) | Err(_)));
}
