import { initialize } from '../../helpers/raw-http.ts';
import { messagesIn, outcomeOf, shown, wrongIn } from '../answers.ts';
import { cut } from '../generators/chunkings.ts';
import { generateHttp } from '../generators/heads.ts';
import { caseRandom } from '../generators/random.ts';
import { Wire } from '../wire.ts';
import { type Ground, inLanes } from './target.ts';

const LANES = 16;
const versions = ['2025-11-25', '2025-03-26', '2025-06-18', '2025-03-26'];

/** Sends generated requests to the client endpoints, each lane as its own client. */
export async function fuzzFront(ground: Ground): Promise<void> {
  const lanes = Array.from({ length: LANES }, (_, number) => new Lane(ground, number));
  await inLanes(LANES, ground.cases.of('front'), (lane, index) => lanes[lane]!.run(index));
  for (const lane of lanes) lane.close();
}

class Lane {
  private readonly ground: Ground;
  private readonly wire: Wire;
  private readonly number: number;
  private session: string | undefined;
  /** The cases of its session, whose data it may see again. */
  private own = new Set<number>();

  constructor(ground: Ground, number: number) {
    this.ground = ground;
    this.number = number;
    this.wire = new Wire(ground.port);
  }

  async run(index: number): Promise<void> {
    const { cases, findings, tell, underWay, done } = this.ground;
    if (this.session === undefined) {
      this.session = await this.open();
      this.own = new Set();
    }
    this.own.add(index);
    const random = caseRandom(cases.seed, index);
    const host = `127.0.0.1:${this.ground.port}`;
    const made = generateHttp(random, index, { host, session: this.session });
    const pieces = cut(random, made.bytes);
    const ids = made.requests?.map((request) => request.ids) ?? [];
    underWay.set(`front ${this.number}`, index);
    tell?.(`${made.what}, in ${pieces.length} pieces: ${shown(made.bytes, 2_000)}`);
    const exchange = await this.wire.exchange({
      pieces,
      isHead: made.requests?.map(({ isHead }) => isHead),
      isEndless: made.isEndless,
      leaves: made.leaves,
    });
    underWay.delete(`front ${this.number}`);
    for (const { status, body } of exchange.answers) {
      tell?.(`→ HTTP ${status} ${shown(body, 2_000)}`);
      // The session has expired, or this case has deleted it.
      if (status === 404 || made.bytes.indexOf('DELETE') !== -1) this.session = undefined;
    }
    const wrong = wrongIn(exchange, this.own, ids);
    if (wrong !== undefined) findings.add(`${wrong}; for ${made.what}: ${shown(made.bytes)}`, index);
    done(index, outcomeOf(exchange));
  }

  close(): void {
    this.wire.drop();
  }

  /** Undefined if there are too many sessions. */
  private async open(): Promise<string | undefined> {
    const body = Buffer.from(JSON.stringify(initialize(versions[this.number % versions.length])));
    const head = `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${this.ground.port}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: ${body.length}\r\n\r\n`;
    const { answers } = await this.wire.exchange({
      pieces: [Buffer.concat([Buffer.from(head), body])],
      isHead: [false],
      ...{ isEndless: false, leaves: false },
    });
    const [answer] = answers;
    return answer !== undefined && messagesIn(answer)[0]?.result !== undefined
      ? answer.headers['mcp-session-id']
      : undefined;
  }
}
