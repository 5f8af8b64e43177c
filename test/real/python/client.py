"""A client of a Python library that lists the tools at an address, calls one, and prints both as JSON."""

import asyncio
import json
import sys

library, url, tool, arguments = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])


async def with_sdk_1():
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(url) as (reading, writing, _):
        async with ClientSession(reading, writing) as session:
            await session.initialize()
            tools = (await session.list_tools()).tools
            result = await session.call_tool(tool, arguments)
            return len(tools), result.content[0].text


async def with_sdk_2():
    from mcp import Client

    async with Client(url) as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool(tool, arguments)
        return len(tools), result.content[0].text


async def with_fastmcp():
    from fastmcp import Client

    async with Client(url) as client:
        tools = await client.list_tools()
        result = await client.call_tool(tool, arguments)
        return len(tools), result.content[0].text


async def with_langchain():
    from langchain_mcp_adapters.client import MultiServerMCPClient

    client = MultiServerMCPClient({"switchboard": {"transport": "streamable_http", "url": url}})
    tools = await client.get_tools()
    result = await next(each for each in tools if each.name == tool).ainvoke(arguments)
    return len(tools), result if isinstance(result, str) else result[0]["text"]


async def with_pydantic_ai():
    """An agent with the test model of the library."""
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    offered = []

    def answer(messages, info):
        if not offered:
            offered.extend(info.function_tools)
            return ModelResponse(parts=[ToolCallPart(tool, arguments)])
        return ModelResponse(parts=[TextPart(str(messages[-1].parts[0].content))])

    agent = Agent(FunctionModel(answer), toolsets=[MCPToolset(url)])
    async with agent:
        result = await agent.run("Use the tool.")
    return len(offered), result.output


async def with_openai_agents():
    from agents.mcp import MCPServerStreamableHttp

    async with MCPServerStreamableHttp(params={"url": url}) as server:
        tools = await server.list_tools()
        result = await server.call_tool(tool, arguments)
        return len(tools), result.content[0].text


clients = {
    "sdk-1": with_sdk_1,
    "sdk-2": with_sdk_2,
    "fastmcp": with_fastmcp,
    "langchain": with_langchain,
    "pydantic-ai": with_pydantic_ai,
    "openai-agents": with_openai_agents,
}
tools, text = asyncio.run(clients[library]())
print(json.dumps({"tools": tools, "text": text}))
