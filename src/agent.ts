import { needNode } from './agent/node-version.ts';

needNode();

/** Agents that use the tools of MCP servers: `import { AiAgent } from 'switchboard/agent'`. */
export { AiAgent, type AiAgentOptions, type ChatOptions } from './agent/agent.ts';
export { ChatError, type ChatSoFar } from './agent/chat-error.ts';
export { type ClaudeClient, ClaudeModel, type ClaudeOptions } from './agent/claude.ts';
export type { AgentEvent, ChatResult, ToolCallRecord, ToolCallStart } from './agent/events.ts';
export { LocalToolbox, type LocalToolboxOptions } from './agent/local-toolbox.ts';
export type * from './agent/model.ts';
export { type NativeContext, type NativeTool, nativeTool } from './agent/native-tools.ts';
export type { AgentTool, CallOptions, Toolbox, ToolOutcome } from './agent/toolbox.ts';
export type { ServerEntry } from './config/entry.ts';
export { SwitchboardError } from './errors.ts';
