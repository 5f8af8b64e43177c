import { expect } from 'vitest';
import type { ServerView } from '../../src/api/views.ts';
import { type EventStream, exchange, RawSession, type RpcMessage } from '../helpers/raw-http.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { Witness } from '../helpers/witness.ts';

/** Too long for any test, so a response that arrives did not wait for it. */
const NEVER_MS = 3_600_000;

export function echoServer(
  witness: Witness,
  fixture: string,
  name = fixture,
  env: Record<string, string> = {},
) {
  return fixtureServer(fixture, { ...witness.env(name), FIXTURE_NAME: name, ...env });
}

interface ServerEvent {
  name: string;
  from: string;
  state: ServerView['state'];
  since: string;
  error: string | null;
  next_try: string | null;
}

const patient = {
  naming: 'always',
  timeoutMs: NEVER_MS,
  connectTimeoutMs: NEVER_MS,
  discoveryWaitMs: NEVER_MS,
  backoffFirstMs: NEVER_MS,
  breakerOpenMs: NEVER_MS,
  ejectAfter: 0,
};

/** Switchboard with the servers of a test and a healthy one. Tools are called `server__tool`. */
export class Scene implements AsyncDisposable {
  readonly witness: Witness;
  readonly switchboard: RunningSwitchboard;
  readonly session: RawSession;
  private readonly bystander: RawSession;
  private calls = 0;

  private constructor(
    witness: Witness,
    switchboard: RunningSwitchboard,
    session: RawSession,
    bystander: RawSession,
  ) {
    this.witness = witness;
    this.switchboard = switchboard;
    this.session = session;
    this.bystander = bystander;
  }

  /** Resolves when all servers are ready or have failed. No timeout is short, unless `settings` say so. */
  static async start(
    servers: Record<string, object> | ((witness: Witness) => Record<string, object>),
    settings: object = {},
  ): Promise<Scene> {
    const witness = await Witness.open();
    const switchboard = await startSwitchboard(
      {
        healthy: fixtureServer('toolbox', witness.env('healthy')),
        ...(typeof servers === 'function' ? servers(witness) : servers),
      },
      { ...patient, ...settings },
    );
    const session = await RawSession.open(switchboard.url);
    const scene = new Scene(witness, switchboard, session, await RawSession.open(switchboard.url));
    await session.toolNames();
    await scene.reaches('healthy', 'ready');
    return scene;
  }

  /** During `fault`, another client has a call in flight at the healthy server and makes a new one. */
  async beside<Outcome>(fault: () => Promise<Outcome>): Promise<Outcome> {
    const order = `order ${++this.calls}`;
    const underWay = this.callHealthy('wait', { order });
    await this.witness.sees('healthy', 'tools/call', ({ params }) => {
      const { arguments: given } = params as { arguments: { order?: string } };
      return given.order === order;
    });
    const outcome = await fault();
    await this.healthyAnswers();
    this.witness.tell('healthy', order);
    expect(await underWay).toBe('waited');
    return outcome;
  }

  async healthyAnswers(): Promise<void> {
    const text = `text ${++this.calls}`;
    expect(await this.callHealthy('echo', { text })).toBe(text);
  }

  async errorOf(
    tool: string,
    given: object = {},
    meta: object = {},
  ): Promise<NonNullable<RpcMessage['error']>> {
    const answer = await this.session.request('tools/call', { name: tool, arguments: given, _meta: meta });
    if (answer.error === undefined) throw new Error(`${tool} did not fail: ${JSON.stringify(answer)}`);
    return answer.error;
  }

  /** A call of `echo` that the server has received and will not answer. */
  async stuckCall(server: string, text: string): Promise<EventStream> {
    const stream = await this.session.openCall(`${server}__echo`, { text, delayMs: NEVER_MS }, text);
    await stream.message(({ method }) => method === 'notifications/progress');
    return stream;
  }

  /** The response of an echo fixture: its input, and the server's name. */
  async echoOf(tool: string, given: object): Promise<{ text: string; name: string; pid: number }> {
    return JSON.parse(await this.session.callText(tool, given));
  }

  async view(server: string): Promise<ServerView> {
    return (await this.get(`/servers/${server}`)) as ServerView;
  }

  async log(server: string): Promise<string[]> {
    return ((await this.get(`/servers/${server}/logs`)) as { lines: string[] }).lines;
  }

  changesTo(server: string, ...states: ServerEvent['state'][]): ServerEvent[] {
    const events = this.switchboard.events.filter(({ event, name, from, state }) => {
      return event === 'server' && name === server && from !== state;
    }) as unknown as ServerEvent[];
    return events.filter(({ state }) => states.includes(state));
  }

  /** Counted from 1. */
  async reaches(server: string, state: ServerEvent['state'], times = 1): Promise<ServerEvent> {
    await this.switchboard.event(() => this.changesTo(server, state).length >= times);
    return this.changesTo(server, state)[times - 1]!;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.switchboard.stop();
    await this.witness[Symbol.asyncDispose]();
  }

  private callHealthy(tool: string, given: object): Promise<string> {
    return this.bystander.callText(`healthy__${tool}`, given);
  }

  private async get(path: string): Promise<unknown> {
    const { json } = await exchange(`${this.switchboard.baseUrl}/api/v1/projects/default${path}`, {
      method: 'GET',
    });
    return json;
  }
}

export async function errorIn(stream: EventStream): Promise<RpcMessage['error']> {
  return (await stream.message(({ error }) => error !== undefined)).error;
}
