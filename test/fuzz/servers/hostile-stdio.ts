/** A stdio server that responds to a call as its case says. Arguments: the seed, and the mood. */
import { createInterface } from 'node:readline';
import { cut } from '../generators/chunkings.ts';
import { caseRandom } from '../generators/random.ts';
import { linesText, type Mood } from '../generators/sse.ts';

const [seed, mood] = [Number(process.argv[2]), process.argv[3] as Mood];

interface Asked {
  id?: unknown;
  method?: string;
  params?: { protocolVersion?: string; arguments?: { case?: number } };
}

/** Responses are written in sequence, so that lines do not mix. */
let writing = Promise.resolve();

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { id, method, params } = JSON.parse(line) as Asked;
    if (id === undefined || method === undefined) return;
    const pieces =
      method === 'tools/call'
        ? callPieces(id, Number(params?.arguments?.case))
        : [answer(id, method, params)];
    writing = writing.then(() => write(pieces));
  })
  .on('close', () => process.exit(0));

function callPieces(id: unknown, index: number): Buffer[] {
  const random = caseRandom(seed, index, 3);
  return cut(random, linesText(random, index, JSON.stringify(id), mood));
}

function answer(id: unknown, method: string, params: Asked['params']): Buffer {
  const results: Record<string, object> = {
    initialize: {
      protocolVersion: params?.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: 'x', version: '1' },
    },
    'tools/list': { tools: [{ name: 't', inputSchema: { type: 'object' } }] },
  };
  const outcome =
    method === 'server/discover'
      ? { error: { code: -32601, message: 'no' } }
      : { result: results[method] ?? {} };
  return Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', id, ...outcome })}\n`);
}

async function write(pieces: readonly Buffer[]): Promise<void> {
  for (const piece of pieces) {
    if (!process.stdout.write(piece)) await new Promise((resolve) => process.stdout.once('drain', resolve));
    if (pieces.length > 1) await new Promise((resolve) => setImmediate(resolve));
  }
}
