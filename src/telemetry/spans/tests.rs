use super::*;

fn exporter(address: &str) -> Arc<SpanExporter> {
    let headers = vec![("x-key".to_owned(), "hunter2".to_owned())];
    let address = address.to_owned();
    SpanExporter::of(&Collector { address, headers, timeout: Duration::from_secs(1), resource: Vec::new() })
}

fn span() -> Span<'static> {
    let (trace, id) = ("0123456789abcdef0123456789abcdef", "0123456789abcdef");
    let (parent, state, attributes, error) = (None, None, &[], None);
    Span { trace, id, parent, state, name: "a", is_server: false, began: 1, ended: 2, attributes, error }
}

#[test]
fn a_collector_that_takes_nothing_costs_bounded_memory_and_every_span_is_counted() {
    // It accepts connections and never answers.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let exporter = exporter(&format!("http://{}/v1/traces", socket.local_addr().unwrap()));
    let before = span_counts().1;
    for _ in 0..MOST + BATCH + 100 {
        exporter.add(&span());
    }
    assert!(exporter.queue.lock().count <= MOST);
    assert!(span_counts().1 - before >= 100);
    let began = Instant::now();
    flush(|one| std::ptr::eq(one, &raw const *exporter));
    assert!(began.elapsed() < LAST + Duration::from_millis(500));
    assert!(exporter.queue.lock().waiting.is_empty());
    assert!(span_counts().1 - before >= (MOST + 100) as u64);
}

#[test]
fn an_address_is_shown_without_what_may_be_secret() {
    let exporter = exporter("https://me:hunter2@collector.example:4318/v1/traces?key=hunter2#hunter2");
    assert_eq!(exporter.collector.shown(), "https://collector.example:4318/v1/traces");
    assert!(!format!("{:?}", exporter.collector).contains("hunter2"));
}

#[test]
fn those_with_the_same_collector_share_an_exporter() {
    let (one, again, other) = (exporter("http://a/x"), exporter("http://a/x"), exporter("http://b/x"));
    assert!(Arc::ptr_eq(&one, &again) && !Arc::ptr_eq(&one, &other));
}

#[test]
fn a_resource_of_megabytes_is_cut_to_whole_attributes() {
    let pair = |name: &str, value: String| (name.to_owned(), value);
    let resource = [pair("first", "1".repeat(99)), pair("long", "2".repeat(3 << 20)), pair("last", "3".repeat(99))];
    let request = encode::request(&resource, &[]);
    let has = |text: &str| request.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has(&"1".repeat(99)) && has(&"3".repeat(99)) && !has("22"));
}

#[test]
fn a_thread_that_panics_loses_its_batch_and_makes_room_for_another() {
    let exporter = exporter("http://panics.invalid/v1/traces");
    let before = span_counts().1;
    {
        let mut queue = exporter.queue.lock();
        (queue.has_thread, queue.sending) = (true, 7);
    }
    let of_thread = Arc::clone(&exporter);
    let died = std::thread::spawn(move || {
        let _panicked = Panicked(&of_thread);
        panic!("of the test");
    });
    assert!(died.join().is_err());
    let queue = exporter.queue.lock();
    assert!(!queue.has_thread && queue.sending == 0);
    assert!(span_counts().1 - before >= 7);
}

#[test]
fn what_another_configuration_exports_is_not_dropped() {
    // It accepts connections and never answers.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1/traces", socket.local_addr().unwrap());
    let collector = exporter(&address).collector.clone();
    let (own, other) = (SpanExport::to(&collector), SpanExport::to(&collector));
    let waiting = |export: &SpanExport| {
        let queue = export.0.queue.lock();
        queue.count + queue.sending
    };
    for _ in 0..3 * BATCH {
        own.exporter().add(&span());
    }
    drop(own);
    flush_unused_spans();
    assert_eq!(waiting(&other), 3 * BATCH);
    let last = other.exporter();
    drop(other);
    flush_unused_spans();
    assert_eq!(last.queue.lock().count, 0);
}
