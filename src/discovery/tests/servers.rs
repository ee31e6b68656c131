//! Servers of MCP that are given their tools or list them, and tools that take one dictionary.

use serde_json::{Value, json};

use super::several::{reported, served};
use super::{file, function, names};

#[test]
fn schemas_that_grow_with_every_line_are_read_in_bounded_time() {
    let mut text =
        "from mcp.server import Server\nfrom mcp.types import Tool\ns = Server('x')\nS0 = {'a': 1}\n".to_owned();
    let levels = (1..30).map(|level| {
        let last = level - 1;
        format!("S{level} = {{'a': S{last}, 'b': S{last}, 'c': S{last}, 'd': S{last}}}\n")
    });
    text.extend(levels);
    text += "@s.list_tools()\nasync def listed(): return [Tool(name='t', inputSchema={'properties': S29})]\n\
             @s.call_tool()\nasync def called(name, arguments): ...\n";
    assert_eq!(names(&file(&text)), ["t"]);
}

#[test]
fn a_server_may_be_given_its_tools() {
    let found = file(
        "from fastmcp import FastMCP\nfrom fastmcp.tools import Tool\ndef a(): ...\ndef _b(): ...\ndef helper(): ...\n\
         mcp = FastMCP('x', tools=[a, Tool.from_function(_b, name='b')])\n",
    );
    assert_eq!(names(&found), ["a", "b"]);
}

const LOW_LEVEL: &str = "from mcp.server import Server\nimport mcp.types as types\nserver = Server('x')\ndef helper(): ...\n\
     @server.list_tools()\nasync def listed(): return LIST\n@server.call_tool()\nasync def called(name, arguments): ...\n";

#[test]
fn the_tools_of_a_low_level_server_are_those_that_it_lists() {
    let listed = |list: &str| file(&LOW_LEVEL.replace("LIST", list));
    let one = "types.Tool(name='find-it', description='Finds.\\n\\nMore.', inputSchema={'type': 'object', 'properties': {'q': \
               {'type': 'string', 'enum': KINDS}}, 'required': ['q'], 'additionalProperties': False})";
    let found = listed(&format!("[{one}]"));
    let [function] = &found.functions[..] else { panic!("{found:?}") };
    assert_eq!((function.name.as_str(), function.symbol()), ("find_it", "call_tool:called:find-it"));
    assert_eq!(function.summary.as_deref(), Some("Finds."));
    let expected = json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": false});
    assert_eq!(Value::Object(function.input_schema.read()), expected, "what is computed restricts nothing");
    for broken in
        ["{'type': 'string'}", "{'properties': [1]}", "{'type': 'strange'}", "schema()", "{**base}", "'x'", "None"]
    {
        let found = listed(&format!("[types.Tool(name='a', inputSchema={broken})]"));
        assert_eq!(Value::Object(found.functions[0].input_schema.read()), json!({"type": "object"}), "{broken}");
    }
    for computed in ["[types.Tool(name=name) for name in names]", "registry.all()", "[]"] {
        let found = listed(computed);
        assert!(names(&found).is_empty(), "{computed}");
        assert_eq!((found.warnings[0].rule.as_ref(), found.warnings[0].line), ("low-level-server", 6), "{computed}");
    }
    let constant = format!("{}TOOLS = [{one}]\n", LOW_LEVEL.replace("LIST", "TOOLS"));
    assert_eq!(names(&file(&constant)), ["find_it"]);
}

#[test]
fn one_dictionary_may_hold_all_arguments() {
    let schema = |declared: &str| {
        let text = format!(
            "from claude_agent_sdk import tool\nfrom typing import TypedDict\nclass In(TypedDict):\n    q: str\n\
             @tool('t', 'Text.', {declared})\nasync def f(args): ...\n"
        );
        Value::Object(function(&text).input_schema.read())
    };
    let types = json!({"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "array", "items": {"type": "string"}}}, "required": ["a", "b"]});
    assert_eq!(schema("{'a': float, 'b': list[str]}"), types);
    assert_eq!(
        schema("{'type': 'object', 'properties': {'a': {'minimum': 1}}}")["properties"],
        json!({"a": {"minimum": 1}})
    );
    assert_eq!(schema("In")["required"], json!(["q"]));
    assert_eq!(schema("{'q': str, 'q': int}")["required"], json!(["q"]));
    let constant =
        "from claude_agent_sdk import tool\nTYPES = {'a': int}\n@tool('t', 'Text.', TYPES)\nasync def f(args): ...\n";
    assert_eq!(function(constant).input_schema.read()["required"], json!(["a"]));
    assert_eq!(schema("{name: str}"), json!({"type": "object"}));
}

#[test]
fn a_low_level_server_may_be_made_by_a_function() {
    let handlers = "@server.list_tools()\nasync def listed():\n    return [Tool(name='a-b', inputSchema=Find.schema())]\n\
                    @server.call_tool()\nasync def called(name, arguments): ...\n";
    let within = |indent: &str| format!("{indent}{}\n", handlers.trim_end().replace('\n', &format!("\n{indent}")));
    let (once, twice) = (within("    "), within("        "));
    let own = twice.replace("server.", "self.server.");
    for (text, symbol) in [
        (
            format!(
                "async def serve(path=None):\n    server = Server('x')\n{once}    async with stdio_server() as s:\n        await server.run(*s)\n"
            ),
            "serve:8:called",
        ),
        (format!("def create():\n    server = Server('x')\n{once}    return server\n"), "create:8:called"),
        (format!("class S:\n    def __init__(self):\n        self.server = Server('x')\n{own}"), "S.__init__:9:called"),
        (format!("class S:\n    def setup(self):\n{own}    async def run(self): ...\n"), "S.setup:8:called"),
    ] {
        let found = file(&format!(
            "from mcp.server import Server\nfrom mcp.types import Tool\n{text}class Find(BaseModel):\n    q: str\n"
        ));
        assert_eq!(names(&found), ["a_b"], "{text}\n{:?}", found.warnings);
        assert_eq!(found.functions[0].symbol(), format!("made:{symbol}:a-b"), "{text}");
        assert!(found.servers.listing.has_handlers && found.warnings.is_empty(), "{:?}", found.warnings);
    }
}

#[test]
fn a_low_level_server_has_the_tools_of_its_helpers() {
    let server = "from mcp.server import Server\nfrom tools import all_tools\nserver = Server('x')\n@server.list_tools()\n\
                  async def listed(): return all_tools()\n@server.call_tool()\nasync def called(name, arguments): ...\n";
    let tools = "from mcp.types import Tool\ndef all_tools():\n    return [Tool(name='a-b', inputSchema=SCHEMA), Tool(name=x)]\n\
                 SCHEMA = {'properties': {'q': {}}}\n";
    let own = format!("from mcp.types import Tool\n{server}ALSO = [Tool(name='c', inputSchema={{}})]\n");
    let expected = "server.c call_tool:called:c, server.a_b call_tool:called:a-b";
    assert_eq!(served(&[("server.py", &own), ("tools.py", tools)]).join(", "), expected);
    let files = [("server.py", server), ("tools.py", tools)];
    assert_eq!(served(&files), ["server.a_b call_tool:called:a-b"]);
    assert_eq!(reported(&files), [""; 0]);
    let made = "async def serve(path: str):\n    server = Server('x')\n    @server.list_tools()\n    async def listed(): return TOOLS\n    \
                @server.call_tool()\n    async def called(name, arguments): ...\n";
    let helper = format!(
        "from mcp.server import Server\nfrom mcp.types import Tool\nTOOLS = [Tool(name='a', inputSchema={{}})]\n{made}"
    );
    let run = "import asyncio\nfrom server import serve\ndef main():\n    asyncio.run(serve('x'))\n";
    let files = [("run.py", run), ("server.py", helper.as_str())];
    assert_eq!(served(&files), ["run.a beside:server.py:made:run.py/main>serve:8:called:a"]);
}

#[test]
fn what_classes_give_their_instances_is_read_in_what_a_low_level_server_lists() {
    let server = "from mcp.server import Server\nfrom mcp.types import Tool\nserver = Server('x')\n@server.list_tools()\n\
                  async def listed(): return [one.tool() for one in HANDLERS]\n@server.call_tool()\nasync def called(name, arguments): ...\n";
    let method =
        "    def tool(self):\n        return Tool(name=self.name, description=self.text, inputSchema=self.schema)\n";
    let base = "SEARCH = 'a-b'\nclass Base:\n    text = 'of base'\n    schema = {'properties': {'q': {}}}\n    \
                def __init__(self, name: str, text='default'):\n        self.name = name\n";
    for class in [
        "class Find:\n    name = SEARCH\n    text: str = 'x'\n    schema = {'properties': {'q': {}}}\n",
        "class Find(Base):\n    def __init__(self):\n        super().__init__(SEARCH)\n",
        "class Find(Base):\n    def __init__(self):\n        super().__init__(text='x', name='a-b')\n",
        "class Mid(Base):\n    pass\nclass Find(Mid):\n    def __init__(self):\n        super().__init__('a-b')\n",
        "class Find(Base):\n    def __init__(self):\n        super().__init__('c')\n        self.name = SEARCH\n",
    ] {
        let found = file(&format!("{server}{base}{class}{method}"));
        assert_eq!(names(&found), ["a_b"], "{class}\n{:?}", found.warnings);
        assert!(found.functions[0].input_schema.read()["properties"].get("q").is_some(), "{class}");
    }
    for class in [
        "class Find(Base):\n    def __init__(self, name):\n        super().__init__(name)\n",
        "class Find(Base):\n    def __init__(self):\n        super().__init__(f'{SEARCH}x')\n",
        "class Find(Find):\n    pass\n",
        "class Find:\n    def __init__(self, name):\n        self.name = name\n",
        "class Find:\n    def __init__(self, name='x'):\n        self.name = name\n",
        "class Find(Base):\n    def __init__(self):\n        super().__init__('x')\n        if more:\n            self.name = 'y'\n",
        "class Sub(Find):\n    name = 'y'\nclass Find:\n    name = 'x'\n",
    ] {
        let found = file(&format!("{server}{base}{class}{method}"));
        assert_eq!(names(&found), [""; 0], "{class}");
        assert_eq!(found.warnings.iter().map(|it| &*it.rule).collect::<Vec<_>>(), ["low-level-server"]);
    }
}

#[test]
fn functions_give_a_low_level_server_functions_and_methods_of_their_own() {
    let imports = "from mcp.server import Server\nfrom mcp_types import ListToolsResult, Tool\n";
    let listed = "return ListToolsResult(tools=[Tool(name='a-b', input_schema={'properties': {'q': {}}})])";
    let nested = format!(
        "{imports}def build() -> Server:\n    async def lists(ctx, params):\n        {listed}\n    async def calls(ctx, params): ...\n    \
         return Server[int]('x', on_list_tools=lists, on_call_tool=calls)\nif __name__ == '__main__':\n    run(build)\n"
    );
    let methods = format!(
        "{imports}class Shop:\n    def __init__(self):\n        self.it = Server('x', on_list_tools=self.lists, on_call_tool=self.calls)\n    \
         async def lists(self, ctx, params):\n        {listed}\n    async def calls(self, ctx, params): ...\n"
    );
    for (text, symbol) in [(nested, "made:build:6:calls:a-b"), (methods, "made:Shop.__init__:8:.calls:a-b")] {
        let found = file(&text);
        assert_eq!(names(&found), ["a_b"], "{text}\n{:?}", found.warnings);
        assert_eq!(found.functions[0].symbol(), symbol);
        assert!(found.warnings.is_empty() && !found.servers.listing.has_handlers, "it is for the second version");
    }
}

#[test]
fn functions_that_return_a_server_or_a_web_application_are_no_tools() {
    for (import, result) in [
        ("from mcp.server import Server", "Server[int]"),
        ("from mcp.server.mcpserver import MCPServer", "MCPServer"),
        ("from starlette.applications import Starlette", "Starlette"),
        ("import fastapi", "fastapi.FastAPI"),
        ("from fastapi import FastAPI", "'FastAPI'"),
    ] {
        let found = file(&format!("{import}\ndef build() -> {result}: ...\ndef search(q: str) -> str: ...\n"));
        assert_eq!(names(&found), ["search"], "{import}");
    }
    for body in ["return Server('x')", "server = Server[int]('x')\n    server.note = 1\n    return server"] {
        let found =
            file(&format!("from mcp.server import Server\ndef build():\n    {body}\ndef search(q: str) -> str: ...\n"));
        assert_eq!(names(&found), ["search"], "{body}");
    }
    let found = file("class Server: ...\nimport jira\ndef build() -> Server: ...\ndef find() -> jira.Server: ...\n");
    assert_eq!(names(&found), ["build", "find"]);
    let found =
        file("import x\ndef main() -> None: ...\ndef f(): ...\nif __name__ == '__main__':\n    x.run_client(main)\n");
    assert_eq!(names(&found), ["f"]);
}

#[test]
fn a_low_level_server_may_be_given_its_handlers() {
    let handlers = "from mcp.server import Server\nfrom mcp_types import ListToolsResult, Tool\nasync def listed(ctx, params):\n    \
                    return ListToolsResult(tools=[Tool(name='a-b', input_schema={'properties': {'q': {}}})])\n\
                    async def called(ctx, params): ...\ndef helper(): ...\n";
    for made in [
        "server = Server('x', on_list_tools=listed, on_call_tool=called)\n",
        "def main():\n    server = Server('x', on_list_tools=listed, on_call_tool=called)\n",
    ] {
        let found = file(&format!("{handlers}{made}"));
        assert_eq!(names(&found), ["a_b"], "{made}");
        assert_eq!(found.functions[0].symbol(), "on_call_tool:called:a-b");
        assert!(found.warnings.is_empty() && !found.servers.listing.has_handlers, "it is for the second version");
    }
}
