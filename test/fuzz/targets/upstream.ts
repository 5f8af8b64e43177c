import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { initialize } from '../../helpers/raw-http.ts';
import { messagesIn, outcomeOf, shown, wrongIn } from '../answers.ts';
import { canaryOf, caseRandom, weighted } from '../generators/random.ts';
import { HOSTILE_MARK, type Mood } from '../generators/sse.ts';
import { HostileHttp } from '../servers/hostile-http.ts';
import { Wire, type WireAnswer } from '../wire.ts';
import { type Ground, inLanes } from './target.ts';

const LANES = 48;
const LIST_SERVERS = 4;
const CHANGING_SERVERS = 4;
/** Hostile servers often do not respond, so a short timeout keeps the run short. */
const HOSTILE_TIMEOUT_MS = 250;

const shares = [
  [25, 'odd-http'],
  [20, 'odd-sse'],
  [15, 'odd-stdio'],
  [20, 'hostile-http'],
  [8, 'hostile-sse'],
  [8, 'hostile-stdio'],
  [4, 'lists'],
  // Their lists are requested only a few times a second.
  [0.5, 'changing'],
] as const;

export class HostileServers implements AsyncDisposable {
  /** Servers whose lists are read by server tests. */
  readonly lists: readonly HostileHttp[];
  /** Servers whose lists all clients see. */
  readonly changing: readonly HostileHttp[];
  private readonly callable: Readonly<Record<string, HostileHttp>>;
  private readonly seed: number;

  private constructor(
    seed: number,
    callable: Record<string, HostileHttp>,
    lists: HostileHttp[],
    changing: HostileHttp[],
  ) {
    this.seed = seed;
    this.changing = changing;
    this.callable = callable;
    this.lists = lists;
  }

  static async start(seed: number, tell: ((what: string) => void) | undefined): Promise<HostileServers> {
    const callable: Record<string, HostileHttp> = {};
    for (const mood of ['odd', 'hostile'] as const) {
      for (const transport of ['http', 'sse'] as const) {
        callable[`${mood}-${transport}`] = await HostileHttp.start({ seed, mood, transport, tell });
      }
    }
    const spare = await HostileHttp.start({ seed, mood: 'odd', transport: 'http', tell });
    const lists = await Promise.all(
      Array.from({ length: LIST_SERVERS }, () =>
        HostileHttp.start({ seed, mood: 'odd', transport: 'http', tell }),
      ),
    );
    const changing = await Promise.all(
      Array.from({ length: CHANGING_SERVERS }, () =>
        HostileHttp.start({ seed, mood: 'odd', transport: 'http', tell, isChanging: true }),
      ),
    );
    const named = Object.fromEntries(changing.map((server, number) => [`changing-${number}`, server]));
    return new HostileServers(seed, { ...callable, spare, ...named }, lists, changing);
  }

  entries(): Record<string, object> {
    const stdio = (mood: Mood) => ({
      command: process.execPath,
      args: [join(import.meta.dirname, '../servers/hostile-stdio.ts'), String(this.seed), mood],
      ...termsOf(mood),
    });
    return {
      ...Object.fromEntries(
        Object.entries(this.callable).map(([name, { url }]) => [
          name,
          {
            url,
            type: name.endsWith('sse') ? 'sse' : 'http',
            ...termsOf(name.startsWith('hostile') ? 'hostile' : 'odd'),
          },
        ]),
      ),
      'odd-stdio': stdio('odd'),
      'hostile-stdio': stdio('hostile'),
      ...Object.fromEntries(this.lists.map(({ url }, number) => [`lists-${number}`, { url, type: 'http' }])),
    };
  }

  /** Calls every server once from this target, so that their later output belongs to its clients only. */
  async warmUp(ground: Ground): Promise<void> {
    const lane = new Lane(ground, 0);
    await lane.open();
    const names = Object.keys(this.entries());
    while (!(await lane.lists([...names.map((name) => `${name}__t`), 'control__echo', 'echo__echo'])))
      await delay(50);
    for (const name of names) await lane.call(name, 0);
    lane.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const all = [...Object.values(this.callable), ...this.lists];
    await Promise.all(all.map((server) => server[Symbol.asyncDispose]()));
  }
}

function termsOf(mood: Mood): object {
  const slots = { concurrency: 1_000 };
  return mood === 'odd'
    ? slots
    : { ...slots, timeoutMs: HOSTILE_TIMEOUT_MS, maxTimeoutMs: HOSTILE_TIMEOUT_MS };
}

/** Calls servers that respond as each case says, and reads lists as each case says. */
export async function fuzzUpstream(ground: Ground, servers: HostileServers): Promise<void> {
  const lanes = Array.from({ length: LANES }, (_, number) => new Lane(ground, number));
  const idle = new Idle(servers.lists);
  const changing = new Idle(servers.changing);
  await inLanes(LANES, ground.cases.of('upstream'), async (number, index) => {
    const lane = lanes[number]!;
    const name = weighted(caseRandom(ground.cases.seed, index, 2), shares);
    ground.underWay.set(`upstream ${number}`, index);
    let outcome: string;
    if (name === 'lists') {
      const run = (server: HostileHttp) => lane.tryOut(server, servers.lists.indexOf(server), index);
      outcome = await idle.with(run);
    } else if (name === 'changing') {
      outcome = await changing.with((server) => lane.listChanged(server, index));
    } else {
      outcome = await lane.run(name, index);
    }
    ground.underWay.delete(`upstream ${number}`);
    ground.done(index, `${name} ${outcome}`);
  });
  for (const lane of lanes) lane.close();
}

/** A pool of servers that handle one case at a time. */
class Idle {
  private readonly servers: HostileHttp[];
  private readonly waiting: ((server: HostileHttp) => void)[] = [];

  constructor(servers: readonly HostileHttp[]) {
    this.servers = [...servers];
  }

  async with(run: (server: HostileHttp) => Promise<string>): Promise<string> {
    const server =
      this.servers.pop() ?? (await new Promise<HostileHttp>((resolve) => this.waiting.push(resolve)));
    try {
      return await run(server);
    } finally {
      const next = this.waiting.shift();
      if (next === undefined) this.servers.push(server);
      else next(server);
    }
  }
}

class Lane {
  private readonly ground: Ground;
  private readonly number: number;
  private readonly wire: Wire;
  private readonly accept: string;
  private session: string | undefined;

  constructor(ground: Ground, number: number) {
    this.ground = ground;
    this.number = number;
    this.wire = new Wire(ground.port);
    // The first type in `accept` decides the response type.
    const types = ['application/json', 'text/event-stream'];
    this.accept = (number % 4 < 2 ? types : types.reverse()).join(', ');
  }

  async open(): Promise<void> {
    const message = initialize(this.number % 2 === 0 ? '2025-11-25' : '2025-06-18');
    const [answer] = (await this.post('/mcp', message)).answers;
    this.session = answer?.headers['mcp-session-id'];
  }

  async lists(tools: readonly string[]): Promise<boolean> {
    const [answer] = (await this.post('/mcp', { jsonrpc: '2.0', id: 0, method: 'tools/list' })).answers;
    const text = answer?.body.toString() ?? '';
    return tools.every((tool) => text.includes(`"${tool}"`));
  }

  async call(server: string, index: number) {
    const params = { name: `${server}__t`, arguments: { case: index } };
    return this.post('/mcp', { jsonrpc: '2.0', id: index, method: 'tools/call', params });
  }

  async run(server: string, index: number): Promise<string> {
    if (this.session === undefined) await this.open();
    const exchange = await this.call(server, index);
    const [answer] = exchange.answers;
    if (answer?.status === 404) this.session = undefined;
    const wrong =
      wrongIn(
        exchange,
        new Set([index]),
        [[String(index)]],
        server.startsWith('hostile') ? 'relayed' : 'rpc',
      ) ?? (answer === undefined ? 'no answer' : wrongResult(answer, index, server.startsWith('odd')));
    this.judge(server, index, answer, wrong);
    return outcomeOf(exchange);
  }

  /** Tests a server while it has the lists of the case. */
  async tryOut(server: HostileHttp, number: number, index: number): Promise<string> {
    server.listCase = index;
    const exchange = await this.post(`/api/v1/projects/default/servers/lists-${number}/test`, {});
    server.listCase = undefined;
    const [answer] = exchange.answers;
    const wrong =
      wrongIn(exchange, new Set([index]), [undefined], 'api') ??
      (answer?.status === 200 ? undefined : 'a server that cannot be tried out');
    this.judge('lists', index, answer, wrong);
    return String(answer?.status);
  }

  /** Replaces the lists of a server by those of the case, and requests all lists. */
  async listChanged(server: HostileHttp, index: number): Promise<string> {
    if (this.session === undefined) await this.open();
    const isTold = await server.change(index);
    const methods = ['tools/list', 'resources/list', 'prompts/list', 'resources/templates/list'];
    const method = methods[index % methods.length]!;
    const exchange = await this.post('/mcp', { jsonrpc: '2.0', id: index, method });
    const [answer] = exchange.answers;
    if (answer?.status === 404) this.session = undefined;
    this.judge('changing', index, answer, wrongIn(exchange, new Set([index]), [[String(index)]]));
    return isTold ? outcomeOf(exchange) : 'not connected';
  }

  private judge(
    server: string,
    index: number,
    answer: WireAnswer | undefined,
    wrong: string | undefined,
  ): void {
    const { findings, tell } = this.ground;
    const body = answer?.body ?? Buffer.alloc(0);
    tell?.(`${server} → HTTP ${answer?.status} ${shown(body, 2_000)}`);
    if (wrong !== undefined) findings.add(`${server}: ${wrong}; ${shown(body)}`, index);
  }

  close(): void {
    this.wire.drop();
  }

  private post(path: string, message: object) {
    const body = Buffer.from(JSON.stringify(message));
    const session = this.session === undefined ? '' : `Mcp-Session-Id: ${this.session}\r\n`;
    const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${this.ground.port}\r\nContent-Type: application/json\r\nAccept: ${this.accept}\r\n${session}Content-Length: ${body.length}\r\n\r\n`;
    return this.wire.exchange({
      pieces: [Buffer.concat([Buffer.from(head), body])],
      isHead: [false],
      ...{ isEndless: false, leaves: false },
    });
  }
}

/** Valid responses have to arrive, and errors have to name their server. */
function wrongResult(answer: WireAnswer, index: number, mustSucceed: boolean): string | undefined {
  const text = answer.body.toString();
  if (answer.status === 404) return undefined;
  if (answer.status !== 200) return `HTTP ${answer.status}; ${text.slice(0, 300)}`;
  if (!mustSucceed) return undefined;
  const final = messagesIn(answer).find(({ method }) => method === undefined);
  if (text.includes(HOSTILE_MARK)) return `what a hostile server said; ${text.slice(0, 300)}`;
  if (!JSON.stringify(final?.result ?? {}).includes(canaryOf(index)))
    return `a right answer did not arrive; ${text.slice(0, 300)}`;
  return undefined;
}
