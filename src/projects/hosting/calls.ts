import { SwitchboardError, stopping } from '../../errors.ts';
import type { FinishedCall } from '../../gateway/records.ts';
import {
  type RequestInput,
  type RequestOutcome,
  type RpcResponse,
  requestServer,
} from '../../upstreams/group-request.ts';
import type { Project } from '../../upstreams/settings.ts';
import type { RegisteredServers } from './registered.ts';

interface HostedCallsOptions {
  registered: RegisteredServers;
  timeoutMs: number;
  timedOut(id: string, message: string): void;
  recorded(call: FinishedCall): void;
}

/** `principal`: who sent it; undefined if Switchboard did. */
type HostedRequest = RequestInput & Pick<FinishedCall, 'principal'>;

interface CallInFlight {
  server: string;
  abort: AbortController;
}

export class HostedCalls {
  private readonly options: HostedCallsOptions;
  private readonly inFlight = new Set<CallInFlight>();
  private whenIdle = () => {};
  private isStopping = false;

  constructor(options: HostedCallsOptions) {
    this.options = options;
  }

  async call(id: string, input: HostedRequest, signal: AbortSignal | undefined): Promise<RpcResponse> {
    if (this.isStopping) throw stopping();
    const { registered, recorded, timedOut } = this.options;
    // The timeout includes a start of the server.
    const { timeoutMs = this.options.timeoutMs, principal } = input;
    const call = { server: registered.nameOf(id), abort: new AbortController() };
    const aborted = call.abort.signal;
    const either = signal === undefined ? aborted : AbortSignal.any([signal, aborted]);
    this.inFlight.add(call);
    try {
      return await this.request(id, { ...input, timeoutMs }, either, (finished) =>
        recorded({ ...finished, principal }),
      );
    } catch (error) {
      if (aborted.aborted) throw stopping();
      if (error instanceof SwitchboardError && error.code === 'call_timeout') timedOut(id, error.message);
      throw error;
    } finally {
      this.inFlight.delete(call);
      // The response is not sent yet.
      if (this.inFlight.size === 0) setImmediate(this.whenIdle);
    }
  }

  /** The same without a record, for heartbeats. */
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

  underWay(): string[] {
    return [...this.inFlight].map(({ server }) => server);
  }

  /** Rejects new calls. Resolves when none is in flight. */
  drain(): Promise<void> {
    this.isStopping = true;
    return new Promise((resolve) => {
      this.whenIdle = resolve;
      if (this.inFlight.size === 0) resolve();
    });
  }

  /** Newest first, so that a queued call does not start. */
  abortAll(): void {
    for (const { abort } of [...this.inFlight].toReversed()) abort.abort();
  }
}

function finished({ answer, ...call }: RequestOutcome, project: Project): FinishedCall {
  return {
    ...call,
    ...{ project, client: 'the API', isToolError: false, request: undefined },
    // Needed only for the server's error message.
    answer: call.isRpcError ? answer : undefined,
  };
}
