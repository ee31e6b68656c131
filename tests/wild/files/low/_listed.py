from mcp.types import Tool

SCHEMA = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}


def tools_for(shop):
    tools = [Tool(name="sell", description="Sells an item.", inputSchema=SCHEMA)]
    if shop is not None:
        tools.append(Tool(name="count", inputSchema={"type": "object"}))
    return tools
