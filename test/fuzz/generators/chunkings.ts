import type { Random } from '../../soak/random.ts';
import { weighted } from './random.ts';

/** The maximum number of writes per case; the rest is sent in one piece. */
const MAX_PIECES = 400;

/** Splits the bytes anywhere: usually not, sometimes into single bytes. */
export function cut(random: Random, bytes: Buffer): Buffer[] {
  const most = weighted(random, [
    [70, bytes.length],
    [15, Math.ceil(bytes.length / 2)],
    [8, 64],
    [5, 7],
    [2, 1],
  ]);
  if (most >= bytes.length) return [bytes];
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = pieces.length === MAX_PIECES ? bytes.length : 1 + random.below(most);
    pieces.push(bytes.subarray(at, at + length));
    at += length;
  }
  return pieces;
}

const extensions = ['', '', '', ';a', ';name=value', ';q="a;b"', `;${'x'.repeat(300)}`];
const trailers = ['', '', '', 'X-Trailer: yes\r\n', 'Mcp-Session-Id: trailed\r\nA: b\r\n'];

/** A chunked body with every allowed variation. */
export function chunkedBody(random: Random, body: Buffer): Buffer {
  const most = weighted(random, [
    [50, body.length + 1],
    [30, 100],
    [15, 10],
    [5, 1],
  ]);
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    const chunk = body.subarray(at, at + 1 + random.below(most));
    const size = random.chance(0.2) ? chunk.length.toString(16).toUpperCase() : chunk.length.toString(16);
    const padded = random.chance(0.1) ? `000${size}` : size;
    parts.push(Buffer.from(`${padded}${random.pick(extensions)}\r\n`), chunk, Buffer.from('\r\n'));
    at += chunk.length;
  }
  parts.push(Buffer.from(`0\r\n${random.pick(trailers)}\r\n`));
  return Buffer.concat(parts);
}

/** A chunked body that every parser should reject. */
export function brokenChunks(random: Random, body: Buffer): Buffer {
  const size = body.length.toString(16);
  const text = body.toString('latin1');
  const broken = random.pick([
    `${size}\n${text}\r\n0\r\n\r\n`,
    `-1\r\n${text}\r\n0\r\n\r\n`,
    `0x${size}\r\n${text}\r\n0\r\n\r\n`,
    `ffffffffffffffff\r\n${text}\r\n0\r\n\r\n`,
    `${size} \r\n${text}\r\n0\r\n\r\n`,
    `${(body.length + 5).toString(16)}\r\n${text}\r\n0\r\n\r\n`,
    `${size}\r\n${text}0\r\n\r\n`,
    `${size}\r\n${text}\r\n`,
    `${size};${'y'.repeat(random.below(20_000))}\r\n${text}\r\n0\r\n\r\n`,
    `zz\r\n${text}\r\n`,
  ]);
  return Buffer.from(broken, 'latin1');
}
