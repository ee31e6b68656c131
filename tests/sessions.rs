//! Two workspaces with two sessions each in one process: what is shared, and what never reaches another.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "it is a test")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hostler::{Environment, Hostler, Runtime};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

/// Until what must happen counts as never happening; no test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(20);

/// Answers with its process, its surroundings and the whole frame it got; logs; hangs when it is asked to.
const PEEK: &str = r#"#!/bin/sh
if [ "$1" = --schema ]; then
    echo '{"name": "peek", "protocol": "v1", "secrets": ["KEY"], "input_schema": {"type": "object"}}'
    exit
fi
while read -r line; do
    id=${line#*'"id":'} id=${id%%,*}
    case $line in
    *'"method":"hello"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocol":1,"pid":'$$'}}' ;;
    *'"hang":true'*) echo '{"jsonrpc":"2.0","method":"progress","params":{"id":'"$id"',"progress":1}}'; exec sleep 600 ;;
    *'"method":"call"'*)
        echo '{"hostler":"log","level":"warning","message":"from '"$MARK"'"}' >&2
        echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"pid":'$$',"mark":"'"$MARK"'","cwd":"'"$PWD"'","got":'"$line"'}}' ;;
    esac
done
"#;

struct World {
    folder: tempfile::TempDir,
    /// Of the first workspace, for all others.
    runtime: Option<Arc<Runtime>>,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_tool(&folder.path().join("tools"), "peek");
        Self { folder, runtime: None }
    }

    /// A workspace in a directory of its own, with these settings and this secret.
    async fn workspace(&mut self, directory: &str, tools: &Path, settings: &str, secret: &str) -> Arc<Hostler> {
        let home = self.folder.path().join(directory);
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join("hostler.toml"), settings).unwrap();
        let path = std::env::var("PATH").unwrap();
        let home_folder = self.folder.path().to_str().unwrap();
        let environment = Environment::from_iter([("PATH", path.as_str()), ("HOME", home_folder), ("KEY", secret)]);
        let mut builder = Hostler::builder().directory(home).tools(tools).environment(environment);
        if let Some(runtime) = &self.runtime {
            builder = builder.runtime(runtime);
        }
        let hostler = builder.open().unwrap();
        self.runtime.get_or_insert_with(|| Arc::clone(hostler.runtime()));
        hostler.ready().await;
        Arc::new(hostler)
    }

    fn tools(&self) -> PathBuf {
        self.folder.path().join("tools")
    }
}

fn write_tool(folder: &Path, name: &str) {
    std::fs::create_dir_all(folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, PEEK).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// An MCP client on an in-memory stream.
struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
    notes: Vec<Value>,
}

impl Client {
    async fn connect(hostler: &Arc<Hostler>) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(theirs);
        let hostler = Arc::clone(hostler);
        tokio::spawn(async move { hostler.serve_mcp(input, output).await });
        let (read, output) = tokio::io::split(ours);
        let mut client = Self { lines: BufReader::new(read).lines(), output, notes: Vec::new() };
        let about = json!({"name": "test", "version": "1"});
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about});
        client.request(0, "initialize", &hello).await;
        assert!(client.answer(0).await["result"]["serverInfo"]["name"] == "hostler");
        client
    }

    async fn send(&mut self, message: &Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn request(&mut self, id: u64, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }

    async fn read(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.expect("hostler says nothing");
        serde_json::from_str(&line.unwrap().expect("the connection is open")).unwrap()
    }

    async fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.read().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.notes.push(message);
        }
    }

    /// Calls the tool and gives its result.
    async fn peek(&mut self, id: u64) -> Value {
        self.request(id, "tools/call", &json!({"name": "peek", "arguments": {}})).await;
        let answer = self.answer(id).await;
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer["result"]["structuredContent"].clone()
    }

    /// Makes a call that hangs and waits until the tool runs.
    async fn hang(&mut self, id: u64) {
        let meta = json!({"progressToken": id});
        self.request(id, "tools/call", &json!({"name": "peek", "arguments": {"hang": true}, "_meta": meta})).await;
        while self.read().await["params"]["progress"] != json!(1.0) {}
    }

    async fn list(&mut self, id: u64) -> Vec<String> {
        self.request(id, "tools/list", &json!({})).await;
        let answer = self.answer(id).await;
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Everything that was sent until now has been read.
    async fn caught_up(&mut self, id: u64) {
        self.request(id, "ping", &json!({})).await;
        self.answer(id).await;
    }
}

const A: &str = "[tool.peek.env]\nMARK = \"a\"\n";
const B: &str = "[tool.peek.env]\nMARK = \"b\"\n";

#[tokio::test]
async fn a_worker_is_shared_where_everything_it_is_made_of_is_the_same() {
    let mut world = World::new();
    let tools = world.tools();
    let workspaces = [
        world.workspace("here", &tools, A, "k-1").await,
        world.workspace("here", &tools, A, "k-1").await,
        world.workspace("here", &tools, B, "k-1").await,
        world.workspace("here", &tools, A, "k-2").await,
        world.workspace("elsewhere", &tools, A, "k-1").await,
        world
            .workspace("here", &tools, "[tool.peek]\nmax_memory = \"1GB\"\n[tool.peek.env]\nMARK = \"a\"\n", "k-1")
            .await,
        world
            .workspace("here", &tools, "[tool.peek]\nnew_privileges = true\n[tool.peek.env]\nMARK = \"a\"\n", "k-1")
            .await,
    ];
    let mut seen = Vec::new();
    for workspace in &workspaces {
        seen.push(Client::connect(workspace).await.peek(1).await);
    }
    let pids: Vec<u64> = seen.iter().map(|one| one["pid"].as_u64().unwrap()).collect();
    assert_eq!(pids[0], pids[1], "the same configuration, folder and secrets");
    for (other, why) in [(2, "variables"), (3, "secrets"), (4, "directories"), (5, "limits"), (6, "privileges")] {
        assert_ne!(pids[0], pids[other], "other {why}");
    }
    let secret = |at: usize| seen[at]["got"]["params"]["secrets"]["KEY"].clone();
    assert_eq!((secret(0), secret(3)), (json!("k-1"), json!("k-2")));
    assert_eq!((&seen[0]["mark"], &seen[2]["mark"]), (&json!("a"), &json!("b")));
    let folder = |name: &str| json!(world.folder.path().canonicalize().unwrap().join(name));
    assert_eq!((&seen[0]["cwd"], &seen[4]["cwd"]), (&folder("here"), &folder("elsewhere")));
    // The first of two users lets go: the other's worker stays.
    workspaces[0].close().await;
    assert_eq!(Client::connect(&workspaces[1]).await.peek(1).await["pid"], pids[1]);
    for workspace in &workspaces[1..] {
        workspace.close().await;
    }
}

#[tokio::test]
async fn four_sessions_of_two_workspaces_do_not_reach_each_other() {
    let mut world = World::new();
    let (tools, other) = (world.tools(), world.folder.path().join("other-tools"));
    write_tool(&other, "peek");
    write_tool(&other, "second");
    let several = |settings: &str| format!("[tool.peek]\nmax_workers = 4\n{settings}");
    let one = world.workspace("one", &tools, &several(A), "k-1").await;
    let two = world.workspace("two", &other, &several(B), "k-2").await;
    let (mut a, mut b) = (Client::connect(&one).await, Client::connect(&one).await);
    let (mut c, mut d) = (Client::connect(&two).await, Client::connect(&two).await);

    // Lists.
    assert_eq!((a.list(1).await, b.list(1).await), (vec!["peek".to_owned()], vec!["peek".to_owned()]));
    assert_eq!(c.list(1).await, ["peek", "second"]);

    // Environment and secrets: every session asks under the same id.
    for (client, mark, secret) in
        [(&mut a, "a", "k-1"), (&mut b, "a", "k-1"), (&mut c, "b", "k-2"), (&mut d, "b", "k-2")]
    {
        let seen = client.peek(2).await;
        assert_eq!((&seen["mark"], &seen["got"]["params"]["secrets"]["KEY"]), (&json!(mark), &json!(secret)));
    }

    // Log levels: only who asked hears, and only of its own calls.
    a.request(3, "logging/setLevel", &json!({"level": "info"})).await;
    a.answer(3).await;
    b.peek(3).await;
    c.peek(3).await;
    a.peek(4).await;
    for client in [&mut a, &mut b, &mut c, &mut d] {
        client.caught_up(5).await;
    }
    let heard = |client: &Client| client.notes.iter().filter(|note| note["method"] == "notifications/message").count();
    assert_eq!([heard(&a), heard(&b), heard(&c), heard(&d)], [1, 0, 0, 0]);

    // Cancellation: the same id in another session, also of the same workspace, is another call.
    a.hang(6).await;
    c.hang(6).await;
    for other in [&mut b, &mut d] {
        other.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 6}})).await;
        other.caught_up(7).await;
    }
    assert_eq!([one.counts().cancelled, two.counts().cancelled], [0, 0]);

    // The end of a session ends its calls and no others, also of the same workspace.
    b.hang(6).await;
    drop(a);
    tokio::time::timeout(PATIENCE, async {
        while one.counts().cancelled == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the call of a client that is gone is cancelled");
    assert_eq!(two.counts().cancelled, 0);
    b.caught_up(8).await;
    assert_eq!(one.counts().cancelled, 1, "its neighbour's call goes on");
    b.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 6}})).await;
    assert_eq!(b.peek(9).await["mark"], "a");
    assert_eq!(one.counts().cancelled, 2);
    c.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 6}})).await;
    assert_eq!(c.peek(9).await["mark"], "b");
    assert_eq!(two.counts().cancelled, 1);

    // Changes of one workspace's list are announced to its sessions alone.
    std::fs::remove_file(other.join("second")).unwrap();
    two.tools();
    while c.read().await["method"] != "notifications/tools/list_changed" {}
    b.caught_up(10).await;
    assert!(b.notes.iter().all(|note| note["method"] != "notifications/tools/list_changed"), "{:?}", b.notes);
    one.close().await;
    two.close().await;
}
