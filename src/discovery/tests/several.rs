//! Servers of several files, and files of which others are helpers.

use super::folders::folder;
use crate::config::{Config, ConfigOptions};
use crate::discovery::{Role, ToolFile, scan};

pub(super) const SERVER: &str = "from mcp.server.fastmcp import FastMCP\nmcp = FastMCP('x')\n";
const TOOL: &str = "@mcp.tool()\ndef f(a: int) -> int: ...\ndef helper(): ...\n";
const REGISTER: &str =
    "def register(mcp):\n    @mcp.tool()\n    def g(a: int): ...\n    @mcp.tool()\n    def f(a: int): ...\n";

/// What is served of each file of a folder: the name, and what the worker knows it by.
pub(super) fn served(files: &[(&str, &str)]) -> Vec<String> {
    served_below("", files)
}

/// The same of a folder among those of the files.
pub(super) fn served_below(below: &str, files: &[(&str, &str)]) -> Vec<String> {
    let folder = folder(files);
    let found = scan(&[folder.path().join(below)]);
    let of_file = |file: &ToolFile| {
        let names = file.functions.iter().map(|it| format!("{}.{} {}", file.pack, it.name, it.symbol()));
        names.collect::<Vec<_>>()
    };
    found.files.iter().flat_map(of_file).collect()
}

/// The places and rules of what is reported.
pub(super) fn reported(files: &[(&str, &str)]) -> Vec<String> {
    let folder = folder(files);
    let found = scan(&[folder.path().to_owned()]);
    let of_file = |file: &ToolFile| {
        let warnings = file.warnings.iter().map(|it| format!("{} {}: {}", file.pack, it.rule, it.reason.what));
        warnings.collect::<Vec<_>>()
    };
    found.files.iter().flat_map(of_file).collect()
}

#[test]
fn tools_of_helpers_are_those_of_the_file_with_the_server() {
    let own = format!("{SERVER}{TOOL}from tools import register\nregister(mcp)\n");
    for (helper, place, second) in [
        (vec![("tools.py", REGISTER)], "tools.py", "tools_f"),
        (vec![("tools/__init__.py", REGISTER)], "tools/__init__.py", "tools___init___f"),
        (
            vec![("tools/__init__.py", "from .deep.more import register\n"), ("tools/deep/more.py", REGISTER)],
            "tools/deep/more.py",
            "tools_deep_more_f",
        ),
        (vec![("tools.py", "from _all import register\n"), ("_all.py", REGISTER)], "_all.py", "all_f"),
    ] {
        let files: Vec<_> = std::iter::once(("server.py", own.as_str())).chain(helper).collect();
        let expected = [
            "server.f f".to_owned(),
            format!("server.g beside:{place}:made:register:2:g"),
            format!("server.{second} beside:{place}:made:register:4:f"),
        ];
        assert_eq!(served(&files), expected, "{files:?}");
        assert!(reported(&files).is_empty());
    }
}

#[test]
fn a_server_of_a_neighbour_makes_tools_of_the_file_that_makes_it_or_runs_it() {
    let notes = format!("from app import mcp\n{TOOL}");
    let below = [("tools/notes.py", notes.as_str())];
    let runs = "from app import mcp\nimport tools.notes\ndef start():\n    mcp.run()\n";
    let with = |files: &[(&'static str, &'static str)]| {
        let all: Vec<_> = files.iter().copied().chain(below).collect();
        served(&all)
    };
    assert_eq!(with(&[("app.py", SERVER), ("main.py", runs)]), ["main.f beside:tools/notes.py:f"]);
    let made = "from handlers.tools import register\nfrom config import make\nmcp = make()\ndef setup():\n    register(mcp)\ndef go():\n    mcp.run()\n";
    let config = "from mcp.server.fastmcp import FastMCP\ndef make():\n    return FastMCP('x')\n";
    let files = [("main.py", made), ("config/__init__.py", config), ("handlers/tools.py", REGISTER)];
    assert_eq!(
        served(&files),
        ["main.g beside:handlers/tools.py:made:register:2:g", "main.f beside:handlers/tools.py:made:register:4:f"]
    );
    // The file imports what is imported from it.
    let circle = format!("{SERVER}import a_notes\n");
    assert_eq!(served(&[("app.py", &circle), ("a_notes.py", &notes)]), ["app.f beside:a_notes.py:f"]);
    // No file that makes a server imports it.
    let alone =
        [("app.py", SERVER), ("notes.py", &notes), ("main.py", "from app import mcp\nimport notes\nmcp.run()\n")];
    assert_eq!(served(&alone), ["notes.f f"]);
    assert!(reported(&alone).is_empty());
}

#[test]
fn a_file_with_tools_of_its_own_is_served_although_others_import_it() {
    let server = format!("{SERVER}{TOOL}");
    for (name, importer) in [
        ("run.py", "from server import mcp\nmcp.run()\n"),
        ("run.py", "from server import mcp\ndef start(): mcp.run()\n"),
        ("a_test_client.py", "import server\nasync def go(): await server.mcp.run_async()\n"),
    ] {
        let files = [("server.py", server.as_str()), (name, importer)];
        assert_eq!(served(&files), ["server.f f"], "{importer}");
        assert!(reported(&files).is_empty(), "{importer}");
    }
    let named = "from server import mcp\n__all__ = ['go']\ndef go(): ...\n";
    assert_eq!(served(&[("server.py", &server), ("own.py", named)]), ["own.go go", "server.f f"]);
    // A toolkit that an agent uses is one by itself.
    let tools = "from langchain_core.tools import tool\n@tool\ndef f(a: int) -> int:\n    'Says.'\n";
    assert_eq!(
        served(&[("tools.py", tools), ("agent.py", "from tools import f\ndef ask(): ...\n")]),
        ["agent.ask ask", "tools.f f"]
    );
    let class = "from langchain_core.tools import BaseTool\nclass Search(BaseTool):\n    name: str = 'search'\n    description: str = 'Says.'\n    def _run(self, a: int): ...\n";
    assert_eq!(served(&[("tools.py", class), ("agent.py", "from tools import Search\n")]), ["tools.search Search"]);
    // Only the header says what it needs.
    let header = "# /// script\n# dependencies = ['mcp']\n# ///\nfrom server import mcp\nmcp.run()\n";
    assert_eq!(served(&[("server.py", &server), ("run.py", header)]), ["run.f beside:server.py:f"]);
}

#[test]
fn a_server_has_no_other_tools_than_it_is_given() {
    let forms = "def f(a: int) -> int: ...\ndef g(a: int): ...\ndef h(): ...\n";
    for (text, names) in [
        ("for one in (f, g):\n    mcp.tool()(one)\n", vec!["f", "g"]),
        ("ALL = [f, g]\nfor one in ALL:\n    mcp.add_tool(one)\n", vec!["f", "g"]),
        ("def main():\n    mcp.add_tool(f, name='first')\n    mcp.tool()(g)\n", vec!["first", "g"]),
        ("def make():\n    return FastMCP('y', tools=[g])\n", vec!["g"]),
        ("def make():\n    for one in [h]:\n        mcp.tool(one)\n", vec!["h"]),
    ] {
        let text = format!("{SERVER}{forms}{text}");
        let served = served(&[("s.py", &text)]);
        let found: Vec<&str> = served.iter().filter_map(|it| it.split([' ', '.']).nth(1)).collect();
        assert_eq!(found, names, "{text}");
    }
    let text = format!("{SERVER}{forms}for one in registry.all():\n    mcp.tool(one)\n");
    assert!(served(&[("s.py", &text)]).is_empty());
    assert_eq!(
        reported(&[("s.py", &text)]),
        ["s inner-tools: the server is given `one`, which cannot be resolved by reading the file, so it is not served"]
    );
}

#[test]
fn files_that_have_nothing_to_do_with_a_server_keep_their_tools() {
    let server = format!("{SERVER}{TOOL}");
    let plain =
        [("server.py", server.as_str()), ("util.py", "import server\n"), ("plain.py", "import util\ndef g(): ...\n")];
    assert_eq!(served(&plain), ["plain.g g", "server.f f"]);
    // It neither runs the server nor gives it tools.
    assert_eq!(
        served(&[("server.py", &server), ("plain.py", "from server import LIMIT\ndef g(): ...\n")]),
        ["plain.g g", "server.f f"]
    );
    assert_eq!(
        served(&[("_server.py", &server), ("plain.py", "from _server import LIMIT\ndef g(): ...\n")]),
        ["plain.g g"]
    );
    // A folder of its own has no other one on its path.
    let apart = [("web/web.py", "import other\ndef g(): ...\n"), ("other.py", "def h(): ...\n")];
    assert_eq!(served(&apart), ["other.h h", "web.g g"]);
}

#[test]
fn what_a_helper_keeps_to_itself_is_not_served() {
    let inner = "from langchain_core.tools import tool\n@tool\ndef delete_all() -> str:\n    'Says.'\n";
    let outer = inner.replace("delete_all", "ask") + "from _inner import delete_all\n";
    assert_eq!(served(&[("main.py", &outer), ("_inner.py", inner)]), ["main.ask ask"]);
    assert!(served(&[("main.py", "from _inner import delete_all\n"), ("_inner.py", inner)]).is_empty());
    let by_module = "import anthropic\n@anthropic.beta_tool\ndef wipe() -> str:\n    'Says.'\n";
    assert!(served(&[("main.py", "import _inner\n"), ("_inner.py", by_module)]).is_empty());
    let named = format!("{SERVER}{TOOL}from tools import register\n__all__ = ['f']\n");
    assert_eq!(
        served(&[("s.py", &named), ("tools.py", REGISTER)]),
        ["s.f f", "s.tools_f beside:tools.py:made:register:4:f"]
    );
}

#[test]
fn functions_that_a_helper_gives_to_the_server_are_tools() {
    let server = format!("{SERVER}from tools.jobs import add_tools\nadd_tools(mcp)\n");
    for text in ["mcp.add_tool(get)", "mcp.tool()(get)", "mcp.add_tool(FunctionTool.from_function(get))"] {
        let helper = format!(
            "from fastmcp.tools import FunctionTool\nfrom fastmcp import FastMCP\ndef get(a: int): ...\ndef own(): ...\n\
             def add_tools(mcp: FastMCP):\n    {text}\n"
        );
        let files = [("server.py", server.as_str()), ("tools/__init__.py", ""), ("tools/jobs.py", &helper)];
        assert_eq!(served(&files), ["server.get beside:tools/jobs.py:get"], "{text}");
    }
}

#[test]
fn a_server_without_tools_is_named() {
    let empty = ["s no-tools: the file makes an MCP server, and no tools of it are found"];
    let registry = "class Registry:\n    def add(self): ...\nREGISTRY = Registry()\n__all__ = ['REGISTRY']\n";
    let with_registry = format!("{SERVER}from registry import REGISTRY\n");
    assert_eq!(reported(&[("s.py", &with_registry), ("registry.py", registry)]), empty);
    let class = format!("{SERVER}class Host:\n    def run(self): ...\n");
    assert_eq!(reported(&[("s.py", &class)]), empty);
    let main = "from server import run\ndef main(): run()\nif __name__ == '__main__':\n    main()\n";
    assert_eq!(
        reported(&[("main.py", main), ("server.py", SERVER)]),
        ["main no-tools: server.py makes an MCP server, and no tools of it are found"]
    );
}

#[test]
fn helpers_of_packages_are_helpers() {
    let files = [
        ("server.py", "from pkg import a\ndef f(): ...\n"),
        ("pkg/a.py", "import b\n"),
        ("b.py", "import c\ndef fb(): ...\n"),
        ("c.py", "def fc(): ...\n"),
        ("other.py", "import d\n@mcp.tool()\ndef o(): ...\n"),
        ("d.py", "def fd(): ...\n"),
    ];
    assert_eq!(served(&files), ["other.o o", "server.f f"]);
}

#[test]
fn helpers_outside_the_folder_are_named() {
    let server = format!("{SERVER}from ..shared import register\nregister(mcp)\n");
    let folder = folder(&[("tools/s.py", server.as_str()), ("shared.py", REGISTER)]);
    let found = scan(&[folder.path().join("tools")]);
    let [file] = &found.files[..] else { panic!("{found:?}") };
    assert!(file.functions.is_empty());
    assert!(file.warnings[0].reason.what.contains("shared.py are not served"), "{:?}", file.warnings);
}

#[test]
fn an_open_version_of_the_first_sdk_is_bounded() {
    const FIRST: &str = "from mcp.server.fastmcp import FastMCP\nmcp = FastMCP('x')\n@mcp.tool()\ndef f(): ...\n";
    const BOTH: &str = "try:\n    from mcp.server.fastmcp import FastMCP\nexcept ImportError:\n    from mcp.server.mcpserver import MCPServer\n";
    const LOW: &str = "from mcp.server import Server\nfrom mcp.types import Tool\nserver = Server('x')\n@server.list_tools()\nasync def listed():\n    \
                       return [Tool(name='f', inputSchema={})]\n@server.call_tool()\nasync def call(name, arguments): ...\n";
    for (text, said, bounded) in [
        (FIRST, "mcp", true),
        (FIRST, "mcp[cli] >=1.2.0; python_version > '3.9'", true),
        (LOW, "mcp>=1", true),
        ("import _server\n", "mcp>=1", true),
        (FIRST, "mcp>=2", false),
        (FIRST, "mcp==1.2.0", false),
        (FIRST, "mcp>=1,<2", false),
        (FIRST, "mcp @ https://a.b/mcp-3.whl", false),
        (FIRST, "fastmcp", true),
        (FIRST, "fastmcp>=0.7.0", true),
        (FIRST, "fastmcp>=4", false),
        (FIRST, "requests", false),
        (BOTH, "mcp>=1", false),
        ("import mcp\n", "mcp>=1", false),
    ] {
        let folder = folder(&[("s.py", text), ("_server.py", FIRST), ("requirements.txt", said)]);
        let mut file = scan(&[folder.path().to_owned()]).files.remove(0);
        file.configure(&Config::load(&ConfigOptions::default(), folder.path()).unwrap());
        let mut expected = vec![said];
        expected.extend(bounded.then_some("mcp<2"));
        assert_eq!(file.header.expect("it has packages").dependencies, expected, "{text}");
    }
}

#[test]
fn names_of_functions_around_a_call_mean_something_else() {
    let text = format!(
        "{SERVER}def f(): ...\ndef a(server, f):\n    server.tool()(f)\ndef b():\n    def f(): ...\n    mcp.tool()(f)\n"
    );
    assert!(served(&[("s.py", &text)]).is_empty());
    let plain = "import _h\ndef f(): ...\ndef g(): ...\ndef setup(it):\n    it.add_tool(f)\n";
    assert_eq!(served(&[("s.py", plain)]).len(), 3);
}

#[test]
fn deep_expressions_are_not_followed() {
    let deep = format!("X = {}1\n", "1 + ".repeat(50_000));
    let text = format!(
        "{SERVER}{TOOL}def register(mcp):\n    @mcp.tool()\n    def g(a: int): ...\n    {deep}    mcp.tool()(helper)\n"
    );
    assert_eq!(served(&[("s.py", &text)]).len(), 3);
}

#[test]
fn a_file_with_the_tools_of_its_helpers_has_them_although_others_import_it() {
    let register = "def register(mcp):\n    @mcp.tool()\n    def g(a: int): ...\n";
    let server = "from mcp.server.fastmcp import FastMCP\nfrom tools import register\ndef create_server():\n    mcp = FastMCP('x')\n    \
                  register(mcp)\n    return mcp\n";
    let agent = "from server import create_server\ndef ask(text: str):\n    return create_server()\n";
    let cli = "def main():\n    from server import mcp\n    mcp.run()\n";
    let files = [("agent.py", agent), ("server.py", server), ("tools.py", register)];
    assert_eq!(served(&files), ["agent.ask ask", "server.g beside:tools.py:made:register:2:g"]);
    let shared = "from mcp.server.fastmcp import FastMCP\nmcp = FastMCP('x')\n";
    let gathering = "import tools\nfrom _app import mcp\n";
    let marked = "from _app import mcp\n@mcp.tool()\ndef g(a: int): ...\n";
    let files = [("_app.py", shared), ("cli.py", cli), ("server.py", gathering), ("tools/__init__.py", marked)];
    assert_eq!(served(&files), ["server.g beside:tools/__init__.py:g"]);
    assert_eq!(reported(&files), [""; 0]);
}

#[test]
fn the_own_files_of_a_package_are_tool_files_if_they_mark_tools() {
    let marked = "from mcp.server.fastmcp import FastMCP\nmcp = FastMCP('x')\n@mcp.tool()\ndef g(a: int): ...\ndef helper(): ...\n";
    let made = "from mcp.server.fastmcp import FastMCP\ndef server(limit: int | None = None):\n    mcp = FastMCP('x')\n    @mcp.tool()\n    def g(): ...\n    \
                return mcp\n";
    let cli = "import click\nfrom shop import server\n@click.command()\n@click.option('--limit')\ndef main(limit):\n    server(limit).run()\n";
    assert_eq!(
        served_below("my-shop", &[("my-shop/__main__.py", marked), ("my-shop/__init__.py", "def f(): ...\n")]),
        ["my_shop.g g"]
    );
    assert_eq!(served_below("shop", &[("shop/__init__.py", made), ("shop/cli.py", cli)]), ["shop.g made:server:4:g"]);
    assert_eq!(
        served_below("shop", &[("shop/__init__.py", "def f(): ...\n"), ("shop/a.py", "def g(): ...\n")]),
        ["a.g g"]
    );
}

#[test]
fn an_agent_has_the_functions_of_other_files_that_it_is_given() {
    let agent =
        "from google.adk.agents import Agent\nfrom parts import f, more\nroot = Agent(model='x', tools=[f, more.g])\n";
    let files = [
        ("agent.py", agent),
        ("main.py", "import agent\nif __name__ == '__main__':\n    print(agent.root)\n"),
        ("parts/__init__.py", "from .one import f\nfrom . import more\n"),
        ("parts/one.py", "def f(a: int): ...\ndef helper(): ...\n"),
        ("parts/more.py", "def g(): ...\n"),
    ];
    assert_eq!(served(&files), ["agent.f beside:parts/one.py:f", "agent.g beside:parts/more.py:g"]);
}

#[test]
fn tools_of_mounted_servers_begin_with_the_prefix() {
    let own = "from fastmcp import FastMCP\nmcp, sub, plain = FastMCP('m'), FastMCP('s'), FastMCP('p')\n@sub.tool\ndef find(): ...\n\
               @plain.tool\ndef other(): ...\n@mcp.tool\ndef top(): ...\ndef build():\n    made = FastMCP('x')\n    \
               @made.tool(name='a-b')\n    def f(): ...\n    return made\n";
    for (mounts, expected) in [
        ("mcp.mount(sub, prefix='x')\nmcp.mount(build(), 'y-z')", ["x_find", "other", "top", "y_z_a_b"]),
        ("def main():\n    made = FastMCP('y')\n    mcp.mount(made, 'x')", ["find", "other", "top", "x_a_b"]),
        ("made = FastMCP('y')\nmcp.mount(made, 'x')", ["find", "other", "top", "a_b"]),
        ("PREFIX = 'x'\nmcp.mount(sub, prefix=PREFIX)", ["x_find", "other", "top", "a_b"]),
        ("mcp.mount('x', sub)\nmcp.mount(plain)", ["x_find", "other", "top", "a_b"]),
        ("async def main():\n    await mcp.import_server(plain, namespace='x')", ["find", "x_other", "top", "a_b"]),
        (
            "app.mount('/x', sub)\nmcp.mount(sub, prefix=computed())\nmcp.mount(FastMCP.as_proxy(url), 'x')",
            ["find", "other", "top", "a_b"],
        ),
    ] {
        let found = served(&[("server.py", &format!("{own}{mounts}\n"))]);
        let names: Vec<&str> = found.iter().filter_map(|one| one.split(' ').next()?.strip_prefix("server.")).collect();
        assert_eq!(names, expected, "{mounts}");
    }
}

#[test]
fn tools_of_mounted_helpers_begin_with_the_prefix() {
    let header =
        "# /// script\n# dependencies = [\"fastmcp\"]\n# ///\nfrom fastmcp import FastMCP\nmcp = FastMCP('m')\n";
    let helper = "from fastmcp import FastMCP\nserver = FastMCP('s')\n@server.tool\ndef find(): ...\ndef build():\n    made = FastMCP('x')\n    \
                  @made.tool\n    def f(): ...\n    return made\n";
    for (text, expected) in [
        (
            "import tea\nmcp.mount(tea.server, 'tea')\n",
            "server.tea_find beside:tea.py:find, server.f beside:tea.py:made:build:7:f",
        ),
        (
            "from tea import server as t\nmcp.mount(t, prefix='tea')\n",
            "server.tea_find beside:tea.py:find, server.f beside:tea.py:made:build:7:f",
        ),
        (
            "def main():\n    from tea import server, build\n    mcp.mount(build(), 'made')\n    mcp.mount(server, 'tea')\n",
            "server.tea_find beside:tea.py:find, server.made_f beside:tea.py:made:build:7:f",
        ),
        (
            "import tea\nmcp.mount(tea.another, 'tea')\n",
            "server.find beside:tea.py:find, server.f beside:tea.py:made:build:7:f",
        ),
    ] {
        let found = served(&[("server.py", &format!("{header}{text}")), ("tea.py", helper)]);
        assert_eq!(found.join(", "), expected, "{text}");
    }
}

#[test]
fn prompts_of_mounted_servers_begin_with_the_prefix() {
    let text = "from fastmcp import FastMCP\nmcp = FastMCP('m')\nsub = FastMCP('s')\n@sub.prompt(name='greet')\ndef ask(): ...\n\
                @sub.prompt\ndef other(): ...\nmcp.mount(sub, 'x')\n";
    let folder = folder(&[("server.py", text)]);
    let found = scan(&[folder.path().to_owned()]);
    let given = |role: &Role| if let Role::Prompt(presented) = role { presented.name.clone() } else { None };
    let names: Vec<_> =
        found.files[0].functions.iter().map(|it| given(&it.role).unwrap_or_else(|| it.name.clone())).collect();
    assert_eq!(names, ["x_greet", "x_other"]);
}

#[test]
fn what_a_function_makes_with_arguments_may_be_mounted() {
    let main = "# /// script\n# dependencies = [\"fastmcp\"]\n# ///\nfrom fastmcp import FastMCP\nimport tea\nmcp = FastMCP('m')\n\
                def main():\n    mcp.mount(tea.build('x'), 'tea')\n";
    let helper = "from fastmcp import FastMCP\ndef build(kind):\n    made = FastMCP(kind)\n    @made.tool\n    def f(): ...\n    return made\n";
    let found = served(&[("server.py", main), ("tea.py", helper)]);
    assert_eq!(found, ["server.tea_f beside:tea.py:made:server.py/main>build:4:f"]);
}
