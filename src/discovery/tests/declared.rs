//! Arguments of tools that something else than the function's parameters declares.

use serde_json::{Value, json};

use super::super::Function;
use super::function;

#[test]
fn a_class_declares_the_arguments() {
    let found: Function = function(
        "from langchain_core.tools import tool\nfrom pydantic import BaseModel, Field\n\
         class In(BaseModel):\n    query: str = Field(description='What.')\n    limit: int = Field(default=7, ge=1)\n\
         @tool('search', args_schema=In)\ndef f(query: str, limit: int, other: bool = False): 'D.'\n",
    );
    let schema = Value::Object(found.input_schema.read());
    assert_eq!(schema["properties"]["query"], json!({"type": "string", "description": "What."}));
    assert_eq!(schema["properties"]["limit"], json!({"type": "integer", "minimum": 1, "default": 7}));
    assert_eq!(schema["properties"]["other"], json!({"type": "boolean", "default": false}));
    assert_eq!(schema["required"], json!(["query"]));
}

#[test]
fn what_a_framework_gives_a_field_is_no_argument() {
    let injected = function(
        "from langchain_core.tools import tool, InjectedToolArg\nfrom typing import Annotated\nfrom pydantic import BaseModel\n\
         class In(BaseModel):\n    pets: list[str]\n    user: Annotated[str, InjectedToolArg]\n\
         @tool(args_schema=In)\ndef f(pets, user): 'D.'\n",
    );
    let schema = injected.input_schema.read();
    assert_eq!((&schema["required"], schema["properties"].as_object().unwrap().len()), (&json!(["pets"]), 1));
}

#[test]
fn a_schema_declares_the_arguments() {
    let schema = "{'type': 'object', 'properties': {'query': {'type': 'string', 'maxLength': 9}, 'limit': {'type': 'integer'}}, \
                  'required': ['query']}";
    let of = |text: &str| Value::Object(function(&text.replace("SCHEMA", schema)).input_schema.read());
    for text in [
        "from langchain_core.tools import tool\n@tool(args_schema=SCHEMA)\ndef f(query, limit=5): 'D.'\n",
        "from langchain_core.tools import tool\nIN = SCHEMA\n@tool(args_schema=IN)\ndef f(**given): 'D.'\n",
        "from langchain_core.tools import StructuredTool\ndef _f(**given): 'D.'\nt = StructuredTool.from_function(_f, name='f', args_schema=SCHEMA)\n",
        "from strands import tool\n@tool(inputSchema={'json': SCHEMA})\ndef f(query: str, limit: int = 5): 'D.'\n",
        "from strands import tool\n@tool(inputSchema=SCHEMA)\ndef f(query: str, limit: int = 5): 'D.'\n",
    ] {
        let schema = of(text);
        let fields = json!({"query": {"type": "string", "maxLength": 9}, "limit": {"type": "integer"}});
        assert_eq!((&schema["properties"], &schema["required"]), (&fields, &json!(["query"])), "{text}");
        assert_eq!(schema["additionalProperties"], json!(false), "{text}");
    }
    let refers = "from strands import tool\n@tool(inputSchema={'$defs': {'A': {}}, 'properties': {'a': {'$ref': '#/$defs/A'}}})\n\
                  def f(a: int): 'D.'\n";
    assert_eq!(of(refers)["properties"], json!({"a": {"type": "integer"}}), "definitions are not taken over");
}
