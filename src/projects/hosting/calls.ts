import { SwitchboardError } from '../../errors.ts';
import type { FinishedCall } from '../../gateway/records.ts';
import {
  type RequestInput,
  type RequestOutcome,
  type RpcResponse,
  requestServer,
} from '../../upstreams/group-request.ts';
import type { Project } from '../../upstreams/settings.ts';
import { CallsUnderWay } from './calls-under-way.ts';
import type { RegisteredServers } from './registered.ts';

interface HostedCallsOptions {
  registered: RegisteredServers;
  timeoutMs: number;
  /** A call has taken too long. */
  timedOut(id: string, message: string): void;
  recorded(call: FinishedCall): void;
}

/** Calls of hosted servers that come from the API, and not from clients of MCP. */
export class HostedCalls {
  readonly underWay = new CallsUnderWay();
  private readonly options: HostedCallsOptions;

  constructor(options: HostedCallsOptions) {
    this.options = options;
  }

  async call(id: string, input: RequestInput, signal: AbortSignal | undefined): Promise<RpcResponse> {
    const { registered, recorded, timedOut } = this.options;
    // The time counts from now on, also where the server is still to be started.
    const { timeoutMs = this.options.timeoutMs } = input;
    try {
      return await this.underWay.run(registered.nameOf(id), signal, (called) =>
        this.request(id, { ...input, timeoutMs }, called, recorded),
      );
    } catch (error) {
      if (error instanceof SwitchboardError && error.code === 'call_timeout') timedOut(id, error.message);
      throw error;
    }
  }

  /** The same without a record, for requests of our own. */
  async request(
    id: string,
    input: RequestInput,
    signal?: AbortSignal,
    recorded: (call: FinishedCall) => void = () => {},
  ): Promise<RpcResponse> {
    const { registered } = this.options;
    const server = registered.server(id);
    const group = server && registered.find(id)?.project.servers.group(server.group);
    if (server === undefined || group === undefined) {
      throw new SwitchboardError(
        'server_unavailable',
        `The hosted server "${registered.nameOf(id)}" is stopped: start it first.`,
      );
    }
    return requestServer(server, group, input, signal, (call) => recorded(finished(call, group.project)));
  }
}

function finished({ answer, ...call }: RequestOutcome, project: Project): FinishedCall {
  return {
    ...call,
    ...{ project, client: 'the API', isToolError: false, request: undefined },
    // What a server says of its error is not known otherwise.
    answer: call.isRpcError ? answer : undefined,
  };
}
