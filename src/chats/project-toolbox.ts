import type { AgentTool, CallOptions, Toolbox, ToolOutcome } from '../agent/toolbox.ts';
import { agentTool, outcomeOf } from '../agent/toolbox.ts';
import { SwitchboardError } from '../errors.ts';
import type { FinishedCall } from '../gateway/records.ts';
import type { LiveProject } from '../projects/live-project.ts';
import { saysToolError } from '../protocol/tool-error.ts';
import { type RequestOutcome, requestGroup } from '../upstreams/group-request.ts';
import type { Client } from '../upstreams/request.ts';

/**
 * The tools of a project, for one agent. It shares the servers, queues and tool switches of the project's clients. `onFinished`
 * receives every call that reached a server.
 */
export class ProjectToolbox implements Omit<Toolbox, 'follow'> {
  private readonly project: LiveProject;
  private readonly onFinished: (call: FinishedCall) => void;
  /** Identifies the agent to servers that run an instance per client. */
  private readonly client: Client = { era: 'modern' };

  constructor(project: LiveProject, onFinished: (call: FinishedCall) => void) {
    this.project = project;
    this.onFinished = onFinished;
  }

  /** Starts servers that never connected, and retries lost servers without waiting for their backoff. */
  async start(): Promise<void> {
    for (const server of this.project.servers.each()) {
      if (server.condition.state === 'backing_off') server.retry();
    }
    await this.project.scope.discovered();
  }

  tools(): AgentTool[] {
    return this.project.scope.catalog.namedTools.flatMap(({ modelSafe, server, item }) =>
      modelSafe === undefined ? [] : agentTool(modelSafe, item, server),
    );
  }

  async call(
    { name, server }: AgentTool,
    args: Record<string, unknown>,
    { signal }: CallOptions,
  ): Promise<ToolOutcome> {
    signal?.throwIfAborted();
    const { scope } = this.project;
    const route = scope.catalog.tool(name);
    const group = route && scope.group(route.group);
    if (route === undefined || group === undefined) {
      throw new SwitchboardError('unknown_tool', `Unknown tool: ${name}`);
    }
    const { own, among, isRepeatable } = route;
    const paramsText = JSON.stringify({ name: own, arguments: args });
    const answer = await requestGroup(
      group,
      { name: server, client: this.client, server: route.server, among, isRepeatable },
      { method: 'tools/call', paramsText },
      signal,
      (call) => this.onFinished(this.finished(call)),
    );
    if ('result' in answer) return outcomeOf(answer.result);
    const { code, message } = answer.error;
    throw new SwitchboardError(
      'server_error',
      `Server "${server}" answered with an error: ${message} (${code})`,
      {
        data: { server, rpc: answer.error },
      },
    );
  }

  /** Releases only the instances of this agent; shared servers keep running. */
  async stop(): Promise<void> {
    for (const server of this.project.servers.each()) server.release(this.client);
  }

  private finished(call: RequestOutcome): FinishedCall {
    const { answer, isRpcError } = call;
    return {
      ...call,
      project: this.project,
      client: 'chat',
      isToolError: answer !== undefined && !isRpcError && saysToolError(answer),
    };
  }
}
