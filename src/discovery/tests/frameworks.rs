//! Functions that frameworks make tools.

use serde_json::json;

use super::super::{Function, Role, ToolFile};
use super::{file, function, names};
use crate::config::tool::Effects;

/// Name, symbol and description of the only tool among functions with these lines and this decorator before them.
fn offered(before: &str, decorator: &str) -> (String, String, Option<String>) {
    let found = function(&format!("{before}\n{decorator}\ndef f(x: int) -> int:\n    'Own.'\ndef helper(): ...\n"));
    (found.name.clone(), found.symbol().to_owned(), found.description)
}

fn own(name: &str) -> (String, String, Option<String>) {
    described_as(name, "Own.")
}

fn described_as(name: &str, text: &str) -> (String, String, Option<String>) {
    (name.to_owned(), "f".to_owned(), Some(text.to_owned()))
}

#[test]
fn a_decorator_says_what_a_tool_is_called() {
    const SERVER: &str = "from fastmcp import FastMCP\nmcp = FastMCP('x')";
    const LANGCHAIN: &str = "from langchain_core.tools import tool as t";
    const AGENTS: &str = "from agents import function_tool";
    for (before, decorator, expected) in [
        (SERVER, "@mcp.tool", own("f")),
        (SERVER, "@mcp.tool()", own("f")),
        (SERVER, "@mcp.tool('search')", own("search")),
        (SERVER, "@mcp.tool(name='search', description='Other.')", described_as("search", "Other.")),
        (SERVER, "@mcp.tool(name=NAME)", own("f")),
        ("from server import mcp", "@mcp.tool(name='a')", own("a")),
        (LANGCHAIN, "@t('search-x', return_direct=True)", own("search_x")),
        ("from langchain.tools import *", "@tool('a')", own("a")),
        (AGENTS, "@function_tool(name_override='a', description_override='b')", described_as("a", "b")),
        ("from smolagents import tool", "@tool", own("f")),
        ("from agno.tools import tool", "@tool(name='a', description='b\\n   c')", described_as("a", "b\n   c")),
        ("from crewai.tools import tool", "@tool('Name of my tool!')", own("Name_of_my_tool")),
        ("from pydantic_ai import Agent\nagent = Agent('m')", "@agent.tool_plain", own("f")),
    ] {
        assert_eq!(offered(before, decorator), expected, "{before} {decorator}");
    }
}

#[test]
fn calls_make_tools_too() {
    const SERVER: &str = "from fastmcp import FastMCP\nmcp = FastMCP('x')";
    const LANGCHAIN: &str = "from langchain.tools import StructuredTool, Tool";
    for (before, call, expected) in [
        ("import server", "server.mcp.add_tool(f, name='a')", own("a")),
        (
            "from fastmcp.tools import Tool\nimport server",
            "server.mcp.add_tool(Tool.from_function(f, name='a'))",
            own("a"),
        ),
        (LANGCHAIN, "t: StructuredTool = StructuredTool.from_function(f, name='a')", own("a")),
        (SERVER, "mcp.tool(f)", own("f")),
        (SERVER, "mcp.tool(name='a')(f)", own("a")),
        (LANGCHAIN, "t = StructuredTool.from_function(func=f, name='a')", own("a")),
        (LANGCHAIN, "ts = [StructuredTool.from_function(f, name='a')]", own("a")),
        (LANGCHAIN, "t = Tool.from_function(f, 'a', 'b')", described_as("a", "b")),
        (LANGCHAIN, "t = Tool('a', f, 'b')", described_as("a", "b")),
        ("from autogen_core.tools import FunctionTool", "t = FunctionTool(f, 'b', name='a')", described_as("a", "b")),
        ("from llama_index.core.tools import FunctionTool", "FunctionTool.from_defaults(fn=f)", own("f")),
        ("from google.adk.tools import LongRunningFunctionTool", "t = LongRunningFunctionTool(func=f)", own("f")),
        ("from pydantic_ai import FunctionToolset", "t = FunctionToolset(tools=[f])", own("f")),
        ("from pydantic_ai import FunctionToolset\nt = FunctionToolset()", "t.add_function(f, name='a')", own("a")),
    ] {
        let found = function(&format!("{before}\ndef f(x: int):\n    'Own.'\ndef helper(): ...\n{call}\n"));
        assert_eq!((found.name.clone(), found.symbol().to_owned(), found.description), expected, "{call}");
    }
}

#[test]
fn messages_may_be_the_result_of_a_tool_of_open_webui() {
    let output = |parameters: &str| {
        let text = format!(
            "\"\"\"\ntitle: A\n\"\"\"\nclass Tools:\n    async def talk(self, q: str{parameters}) -> None: ...\n"
        );
        file(&text).functions[0].output_schema.clone()
    };
    assert!(output(", __event_emitter__=None").is_none());
    assert!(output("").is_some());
}

#[test]
fn who_marks_some_functions_means_no_others() {
    const SERVER: &str = "from fastmcp import FastMCP\nmcp = FastMCP('x')\ndef helper(): ...\n";
    let served = |text: &str| {
        let found = file(text);
        names(&found).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let marked = format!("{SERVER}@mcp.tool\ndef _f(): ...\n");
    assert_eq!(served(&marked), ["_f"]);
    assert_eq!(served(&format!("__all__ = ['helper']\n{marked}")), ["helper", "_f"]);
    assert_eq!(served(&format!("{SERVER}@mcp.prompt\ndef p(q: str): ...\n")), ["p"]);
    // A decorator of the file itself may do anything, is no tool, and a word alone means nothing.
    assert_eq!(served("def tool(f): return f\n@tool\ndef f(): ...\ndef g(): ...\n"), ["f", "g"]);
    assert_eq!(served("@tool\ndef f(): ...\ndef g(): ...\n"), ["f", "g"]);
    assert_eq!(served("from cache import store\n@store.get('x')\ndef f(): ...\n"), ["f"]);
}

#[test]
fn a_server_has_resources_and_prompts() {
    let text = "from mcp.server.fastmcp import FastMCP\nmcp = FastMCP('x')\n\
                @mcp.resource('n://{id}', mime_type='text/plain')\ndef r(id: str) -> str: ...\n\
                @mcp.prompt(title='T')\ndef p(q: str) -> str: ...\n@mcp.tool()\ndef t() -> int: ...\n";
    let found: ToolFile = file(text);
    let roles: Vec<_> = found.functions.iter().map(|one| &one.role).collect();
    assert!(matches!(roles[0], Role::Resource { uri, .. } if uri == "n://{id}"), "{roles:?}");
    assert!(matches!(roles[1], Role::Prompt(_)) && roles[2].is_tool(), "{roles:?}");
}

#[test]
fn what_a_framework_gives_is_no_argument() {
    const TYPING: &str = "import typing as t\nfrom typing import Annotated, Optional";
    let left = |before: &str, parameters: &str| {
        let found = function(&format!("{before}\ndef f({parameters}): ...\n")).input_schema.read();
        found["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    for (import, parameters) in [
        ("from fastmcp import Context", "a: int, ctx: Context"),
        ("from fastmcp import Context", "a: int, ctx: 'Context | None' = None"),
        ("import mcp.server.fastmcp as m", "a: int, ctx: Optional[m.Context[A, B]] = None"),
        ("from agents import RunContextWrapper", "ctx: RunContextWrapper[Any], a: int"),
        ("from langchain_core.tools import InjectedToolArg as I", "a: int, u: Annotated[str, I]"),
        ("from langgraph.prebuilt import InjectedState", "a: int, s: t.Annotated[dict, InjectedState('x')]"),
        ("from langchain_core.runnables import RunnableConfig", "a: int, config: RunnableConfig"),
        ("from fastmcp.dependencies import Depends", "a: int, db=Depends(connect)"),
        ("from fastmcp.dependencies import CurrentContext", "a: int, ctx=CurrentContext()"),
        ("", "a: int, __user__: dict = {}, __event_emitter__=None"),
    ] {
        assert_eq!(left(&format!("{TYPING}\n{import}"), parameters), ["a"], "{parameters}");
    }
    // Other classes of these names are arguments.
    assert_eq!(left("from decimal import Context", "a: int, ctx: Context"), ["a", "ctx"]);
    assert_eq!(left("class Context: ...", "a: int, ctx: Context"), ["a", "ctx"]);
    assert_eq!(left("", "a: int, agent: str"), ["a", "agent"]);
    assert_eq!(left("from agno.tools import tool\n@tool", "a: int, agent: str"), ["a"]);
}

#[test]
fn the_hints_of_mcp_are_effects() {
    for (hints, expected) in [
        ("{'readOnlyHint': True}", Some(Effects::Pure)),
        ("{'readOnlyHint': False, 'idempotentHint': True}", Some(Effects::Idempotent)),
        ("{'idempotentHint': True}", Some(Effects::Idempotent)),
        ("ToolAnnotations(readOnlyHint=True)", Some(Effects::Pure)),
        ("ToolAnnotations(read_only_hint=True)", Some(Effects::Pure)),
        ("{'destructiveHint': True}", None),
        ("HINTS", None),
        ("READS", Some(Effects::Pure)),
        ("{'readOnlyHint': True, 'title': name()}", Some(Effects::Pure)),
    ] {
        let constant = "from server import mcp\nREADS = ToolAnnotations(readOnlyHint=True)\n";
        let found = function(&format!("{constant}@mcp.tool(annotations={hints})\ndef f(): ...\n"));
        let declared = found.declared.and_then(|layer| layer.effects).map(|effects| effects.value);
        assert_eq!(declared, expected, "{hints}");
    }
}

#[test]
fn what_else_authors_tell_clients_is_kept() {
    let said = |decorator: &str| {
        let hints = function(&format!("from server import mcp\n@mcp.tool({decorator})\ndef f(): ...\n")).hints;
        hints.map(|hints| (hints.title, hints.is_destructive, hints.is_open_world))
    };
    let title = || Some("A title".to_owned());
    for (decorator, expected) in [
        ("", None),
        ("annotations={'readOnlyHint': True}", None),
        ("title='A title'", Some((title(), None, None))),
        ("annotations={'title': 'A title', 'destructiveHint': False}", Some((title(), Some(false), None))),
        ("title='A title', annotations={'title': 'Another'}", Some((title(), None, None))),
        (
            "annotations=ToolAnnotations(destructive_hint=True, open_world_hint=False)",
            Some((None, Some(true), Some(false))),
        ),
        ("annotations={'destructiveHint': 'no', 'openWorldHint': f()}", None),
    ] {
        assert_eq!(said(decorator), expected, "{decorator}");
    }
}

#[test]
fn results_of_a_frameworks_classes_are_content() {
    let imports = "from mcp.types import TextContent as T, ImageContent as I, CallToolResult\nfrom server import mcp\n";
    for result in ["I", "list[T | I]", "CallToolResult"] {
        let found = file(&format!("{imports}@mcp.tool()\ndef f() -> {result}: ...\n"));
        assert!(found.functions[0].output_schema.is_none() && found.open.is_empty(), "{result} {:?}", found.open);
    }
    let text = function(&format!("{imports}@mcp.tool()\ndef f() -> T: ...\n")).output_schema.unwrap().read();
    assert_eq!(text["properties"]["result"], json!({"type": "string"}));
    let whole = function("from server import mcp\n@mcp.tool()\ndef f() -> int: ...\n");
    assert!(whole.output_schema.is_some(), "the decorator leaves what the function returns");
}

#[test]
fn tools_of_one_name_are_told_apart_by_their_functions() {
    let found = file("from server import mcp\n@mcp.tool('a')\ndef f(): ...\n@mcp.tool(name='a')\ndef g(): ...\n");
    assert_eq!(names(&found), ["a", "g"]);
    assert_eq!(found.functions.iter().map(|it| it.wanted.as_deref()).collect::<Vec<_>>(), [None, Some("a")]);
}

#[test]
fn the_program_of_a_file_is_no_tool() {
    for guard in ["main()", "sys.exit(main())", "raise SystemExit(asyncio.run(main()))", "code = main()"] {
        let found = file(&format!("def f(): ...\ndef main(): ...\nif __name__ == '__main__':\n    {guard}\n"));
        assert_eq!(names(&found), ["f"], "{guard}");
    }
    assert_eq!(names(&file("def main(): ...\nif __name__ == '__main__':\n    print(f())\n")), ["main"]);
    let listed = "__all__ = ['main']\ndef main(): ...\nif __name__ == '__main__':\n    main()\n";
    assert_eq!(names(&file(listed)), ["main"]);
}

#[test]
fn methods_are_tools() {
    const METHODS: &str = "    def a(self, x: int): ...\n    def _b(self): ...\n    @property\n    def c(self): ...\n    @staticmethod\n    def d(): ...\n";
    let served = |text: &str| {
        let found = file(text);
        found.functions.iter().map(|one| format!("{}={}", one.name, one.symbol())).collect::<Vec<_>>()
    };
    assert_eq!(served(&format!("class Tools:\n{METHODS}def _helper(): ...\n")), ["a=Tools.a", "d=Tools.d"]);
    assert_eq!(served(&format!("class Other:\n{METHODS}def helper(): ...\n")), ["helper=helper"]);
    let instance = format!(
        "__all__ = ['f', 'it']\nclass Other:\n    def __init__(self, n): ...\n{METHODS}it = Other(3)\ndef f(): ...\n"
    );
    assert_eq!(served(&instance), ["a=it.a", "d=it.d", "f=f"]);
    let toolkit = "from agno.tools import Toolkit\nclass K(Toolkit):\n    def __init__(self, **more):\n        tools = [self.a]\n        \
                   if more:\n            tools.append(self.c)\n        super().__init__(tools=tools)\n    def a(self): ...\n    \
                   def b(self): ...\n    def c(self): ...\n";
    assert_eq!(served(toolkit), ["a=K.a", "c=K.c"]);
    let renamed = toolkit.replace("super().__init__(tools=tools)", "self.register(self.b, name='find-it')");
    assert_eq!(served(&renamed), ["a=K.a", "find_it=K.b", "c=K.c"]);
    let derived = format!(
        "{toolkit}    async def d(self): ...\nclass Derived(K):\n    def __init__(self):\n        \
         super().__init__(async_tools=[(self.d, 'a'), (self.e, 'other')])\n        self.register(function=self.b, name='more')\n    \
         async def e(self): ...\n"
    );
    assert_eq!(served(&derived), ["a=Derived.a", "more=Derived.b", "c=Derived.c", "other=Derived.e"]);
    let decorated = "from strands import tool\nclass Db:\n    @tool(name='q')\n    def query(self, sql: str): ...\n    def close(self): ...\n";
    assert_eq!(served(decorated), ["q=Db.query"]);
    let inherited =
        "class Base:\n    def a(self): ...\n    def b(self): ...\nclass Tools(Base):\n    def b(self, x: int): ...\n";
    assert_eq!(served(inherited), ["a=Tools.a", "b=Tools.b"]);
    let schema = file(inherited).functions[1].input_schema.read();
    assert_eq!(schema["properties"], json!({"x": {"type": "integer"}}), "the instance is no argument");
}

#[test]
fn a_class_may_be_one_tool() {
    let whole = function(
        "from langchain_core.tools import BaseTool\nfrom pydantic import BaseModel\nfrom typing import Type\n\
         class In(BaseModel):\n    q: str\n    n: int = 3\n\
         class Find(BaseTool):\n    name: str = 'find-it'\n    description: str = 'Finds.'\n    args_schema: Type[BaseModel] = In\n    \
         def _run(self, **given) -> str: ...\n",
    );
    assert_eq!((whole.name.as_str(), whole.symbol(), whole.summary.as_deref()), ("find_it", "Find", Some("Finds.")));
    let schema = whole.input_schema.read();
    assert_eq!((&schema["required"], &schema["additionalProperties"]), (&json!(["q"]), &json!(false)));
    assert_eq!(schema["properties"]["n"], json!({"type": "integer", "default": 3}));
    let inputs = function(
        "from smolagents import Tool\nclass T(Tool):\n    name = 't'\n    description = 'd'\n    \
         inputs = {'a': {'type': 'string', 'description': 'A.'}, 'b': {'type': 'any', 'nullable': True}}\n    \
         output_type = 'string'\n    def forward(self, a, b=None): ...\n",
    );
    let schema = inputs.input_schema.read();
    assert_eq!(schema["properties"], json!({"a": {"type": "string", "description": "A."}, "b": {}}));
    assert_eq!(schema["required"], json!(["a"]));
}

#[test]
fn a_class_that_cannot_be_made_is_told_and_hides_nothing() {
    let needs = "class Tools:\n    def __init__(self, path): ...\n    def a(self): ...\n";
    let found = file(needs);
    assert!(names(&found).is_empty(), "{found:?}");
    assert_eq!((found.warnings[0].rule.as_ref(), found.warnings[0].line), ("class", 1));
    let made = file(&format!("{needs}tools = Tools('x')\n"));
    assert_eq!(made.functions[0].symbol(), "tools.a");
    for unnamed in ["Tools(mcp)", "start([Tools], tools=Tools(mcp))"] {
        let made = file(&format!("from server import mcp, start\n{needs}{unnamed}\n"));
        assert_eq!(made.functions[0].symbol(), "held:Tools.a", "{unnamed}");
    }
    let both =
        file("class Tools:\n    def a(self): ...\n    def b(self): ...\n__all__ = ['Tools', 'a']\ndef a(): ...\n");
    let symbols: Vec<_> = both.functions.iter().map(Function::symbol).collect();
    assert_eq!((symbols, names(&both)), (vec!["Tools.a", "Tools.b", "a"], vec!["Tools_a", "b", "a"]));
}

#[test]
fn frontmatter_declares_packages() {
    let text = "\"\"\"\ntitle: T\nrequirements: requests, six>=1\n\"\"\"\n";
    let found = file(&format!("{text}class Tools:\n    def a(self): ...\n"));
    assert_eq!(found.header.unwrap().dependencies, ["requests", "six>=1"]);
    assert!(file(&format!("{text}def a(): ...\n")).header.is_none(), "it means something in Open WebUI's files alone");
}

#[test]
fn open_webui_has_what_its_tools_do_not_declare() {
    let needs = |text: &str| file(text).header.map(|header| header.dependencies);
    let class = "class Tools:\n    class Valves: ...\n    def f(self): ...\n";
    let listed = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(
        needs(&format!("import requests, os, unknown_thing\nfrom bs4.element import Tag\n{class}")),
        listed(&["beautifulsoup4", "requests"])
    );
    let declared = format!("'''\ntitle: x\nrequirements: Requests>=2, six\n'''\nimport requests, pydantic\n{class}");
    assert_eq!(needs(&declared), listed(&["Requests>=2", "six", "pydantic"]));
    assert_eq!(needs(&format!("import os\n{class}")), None);
    assert_eq!(needs("import requests\nclass Tools:\n    def f(self): ...\n"), None, "not of Open WebUI");
    let filter = file("class Filter:\n    def inlet(self, body): ...\n");
    assert_eq!(filter.warnings[0].rule, "no-tools");
}

#[test]
fn what_authors_guard_or_switch_off_stays_so() {
    for decorator in [
        "@t.function_tool(needs_approval=True)",
        "@t.tool(requires_confirmation=check)",
        "@t.tool(requires_approval=True)",
    ] {
        let found = function(&format!("import agents as t\n{decorator}\ndef f(): ...\n"));
        let policy = found.declared.unwrap().policy;
        assert_eq!(policy.requires_approval.map(|set| set.value), Some(true), "{decorator}");
    }
    assert!(function("import agents as t\n@t.tool(needs_approval=False)\ndef f(): ...\n").declared.is_none());
    for decorator in ["@t.tool(enabled=False)", "@t.function_tool(is_enabled=False)"] {
        let found = file(&format!("import agents as t\n{decorator}\ndef f(): ...\n@t.tool\ndef g(): ...\n"));
        assert_eq!(names(&found), ["g"], "{decorator}");
    }
    let hidden =
        function("import x as t\n@t.tool(exclude_args=['b'])\ndef f(a: int, b: int = 1): ...\n").input_schema.read();
    assert_eq!(hidden["properties"], json!({"a": {"type": "integer"}}));
}

fn repeated(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect::<Vec<_>>().concat()
}

#[test]
fn hostile_files_are_read_in_bounded_time() {
    for part in ["-", "not ", "lambda:", "1**"] {
        let deep = format!("def f(x: \"{}1\") -> int: ...\n", part.repeat(300_000));
        assert_eq!(names(&file(&deep)), ["f"], "{part}");
    }
    let methods: String = repeated(1000, |n| format!("    def m{n}(self): ...\n"));
    let derived: String = repeated(1000, |n| format!("class D{n}(B): ...\n"));
    let found = file(&format!("from agno.tools import Toolkit\nclass B(Toolkit):\n{methods}{derived}"));
    assert!(found.functions.len() <= 1000, "{}", found.functions.len());
    let many: String = repeated(20_000, |n| format!("    def m{n}(self): ...\n"));
    assert!(file(&format!("class Tools:\n{many}")).functions.len() <= 1000);
}

#[test]
fn a_class_of_that_name_may_be_a_helper() {
    let helper = "class Tools:\n    def __init__(self, path): ...\n    def sharpen(self): ...\n";
    assert_eq!(names(&file(&format!("{helper}def search(): ...\n"))), ["search"]);
    let simple = "class Tools:\n    def sharpen(self): ...\ndef search(): ...\n";
    assert_eq!(names(&file(simple)), ["search"]);
    let webui = format!("\"\"\"\ntitle: T\n\"\"\"\n{simple}");
    assert_eq!(names(&file(&webui)), ["sharpen"]);
    let sentence = format!("\"\"\"\ntitle: T\nrequirements: an account, see README\n\"\"\"\n{simple}");
    assert!(file(&sentence).is_ready());
}

#[test]
fn a_decorated_function_in_a_class_may_take_no_instance() {
    let found = file(
        "from crewai.tools import tool\nclass Tools:\n    @tool('Calculate')\n    def calc(operation: str): ...\n    \
         @tool\n    def own(self, n: int): ...\n    @tool\n    def nothing(): ...\n",
    );
    let arguments: Vec<_> = found
        .functions
        .iter()
        .map(|one| {
            (
                one.symbol(),
                one.input_schema.read()["properties"]
                    .as_object()
                    .unwrap()
                    .keys()
                    .cloned()
                    .collect::<Vec<_>>()
                    .join(","),
            )
        })
        .collect();
    assert_eq!(
        arguments,
        [("Tools.calc", "operation".to_owned()), ("Tools.own", "n".to_owned()), ("Tools.nothing", String::new())]
    );
}

#[test]
fn what_stands_in_for_an_import_is_none_of_the_file() {
    for other in ["def tool(f): return f", "tool = None", "class tool: ..."] {
        let found = file(&format!(
            "try:\n    from smolagents import tool\nexcept ImportError:\n    {other}\n@tool\ndef f(x: int): ...\ndef helper(): ...\n"
        ));
        assert_eq!(names(&found), ["f"], "{other}");
    }
}

#[test]
fn a_function_that_stands_in_for_an_import_may_be_a_tool() {
    let found = file(
        "try:\n    from fastlib import search\nexcept ImportError:\n    def search(query): ...\ndef other(): ...\n",
    );
    assert_eq!(names(&found), ["search", "other"]);
}
