import type { AgentTool, CallOptions, Toolbox, ToolOutcome } from '../agent/toolbox.ts';
import { agentTool, outcomeOf } from '../agent/toolbox.ts';
import type { Route } from '../catalog/catalog.ts';
import { SwitchboardError } from '../errors.ts';
import { itemOf } from '../gateway/items.ts';
import type { FinishedCall } from '../gateway/records.ts';
import type { AllScopes, Scope } from '../gateway/scope.ts';
import type { AccessControl } from '../identity/access-control.ts';
import type { Limiter } from '../identity/limiter.ts';
import type { Sender } from '../identity/principal.ts';
import type { LiveProject } from '../projects/live-project.ts';
import { saysToolError } from '../protocol/tool-error.ts';
import type { Group } from '../upstreams/group.ts';
import { type RequestOutcome, requestGroup } from '../upstreams/group-request.ts';
import type { Client } from '../upstreams/request.ts';

/** Decide what the principal of an agent may use. */
export interface Guards {
  scopes: AllScopes;
  control: AccessControl;
  limiter: Limiter;
}

/**
 * The tools of a project that the sender may call, for one agent. It shares the servers, queues and tool switches of the
 * project's clients. `onFinished` receives every call that reached a server.
 */
export class ProjectToolbox implements Omit<Toolbox, 'follow'> {
  private readonly project: LiveProject;
  private readonly sender: Sender;
  private readonly guards: Guards;
  private readonly onFinished: (call: FinishedCall) => void;
  /** Identifies the agent to servers that run an instance per client. */
  private readonly client: Client = { era: 'modern' };

  constructor(
    project: LiveProject,
    sender: Sender,
    guards: Guards,
    onFinished: (call: FinishedCall) => void,
  ) {
    this.project = project;
    this.sender = sender;
    this.guards = guards;
    this.onFinished = onFinished;
  }

  /** Starts servers that never connected, and retries lost servers without waiting for their backoff. */
  async start(): Promise<void> {
    for (const server of this.project.servers.each()) {
      if (server.condition.state === 'backing_off') server.retry();
    }
    await this.scope?.discovered();
  }

  tools(): AgentTool[] {
    const tools = this.scope?.catalog.namedTools ?? [];
    return tools.flatMap(({ modelSafe, server, item }) =>
      modelSafe === undefined ? [] : agentTool(modelSafe, item, server),
    );
  }

  async call(
    { name, server }: AgentTool,
    args: Record<string, unknown>,
    { signal }: CallOptions,
  ): Promise<ToolOutcome> {
    signal?.throwIfAborted();
    const { limiter } = this.guards;
    const { principal } = this.sender;
    limiter.countRequest(principal, this.project.id, true);
    const { group, route } = this.authorized(name);
    const { own, among, isRepeatable } = route;
    const paramsText = JSON.stringify({ name: own, arguments: args });
    const ticket = limiter.beginCall(principal, group, own);
    const answer = await requestGroup(
      group,
      { name: server, client: this.client, server: route.server, among, isRepeatable },
      { method: 'tools/call', paramsText },
      signal,
      (call) => this.onFinished(this.finished(call)),
    ).finally(() => ticket?.release());
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

  /** The agent asked for a tool that it does not have. If rules hide it, that is a denial. */
  missed(name: string): void {
    try {
      this.authorized(name);
    } catch (error) {
      if (!(error instanceof SwitchboardError)) throw error;
    }
  }

  /** Releases only the instances of this agent; shared servers keep running. */
  async stop(): Promise<void> {
    for (const server of this.project.servers.each()) server.release(this.client);
  }

  /** As the principal's clients see the project now; undefined if they do not. */
  private get scope(): Scope | undefined {
    return this.guards.scopes.for(this.sender.principal.permissions).of(this.project.id);
  }

  /** Throws unless the principal may call the tool now. */
  private authorized(name: string): { route: Route; group: Group } {
    const { scope } = this;
    const unknown = () => new SwitchboardError('unknown_tool', `Unknown tool: ${name}`);
    // What rules hide is looked up too, so that the denial is recorded.
    const found = targetIn(scope, name) ?? targetIn(scope?.full, name);
    if (found === undefined) throw unknown();
    const item = itemOf(found.group, 'tools', found.route.own);
    this.guards.control.authorizeItem(this.sender, this.project, item, unknown);
    return found;
  }

  private finished(call: RequestOutcome): FinishedCall {
    const { answer, isRpcError } = call;
    return {
      ...call,
      project: this.project,
      principal: this.sender.principal,
      client: 'chat',
      isToolError: answer !== undefined && !isRpcError && saysToolError(answer),
    };
  }
}

function targetIn(scope: Scope | undefined, name: string): { route: Route; group: Group } | undefined {
  const route = scope?.catalog.tool(name);
  const group = route && scope?.group(route.group);
  return route && group && { route, group };
}
