import { createReadStream, statSync } from 'node:fs';
import { Readable } from 'node:stream';

/** A folder, or a file with its text or a source path. */
export type TarEntry = { path: string; mode: number } & ({ text: string } | { file: string } | object);

const blockBytes = 512;

export function tarOf(entries: TarEntry[]): Readable {
  return Readable.from(blocksOf(entries), { objectMode: false });
}

async function* blocksOf(entries: TarEntry[]): AsyncGenerator<Buffer> {
  for (const entry of entries) {
    if ('file' in entry) {
      const { size } = statSync(entry.file);
      yield headerOf(entry, '0', size);
      for await (const chunk of createReadStream(entry.file, { highWaterMark: 1 << 20 }))
        yield chunk as Buffer;
      yield padding(size);
    } else if ('text' in entry) {
      const content = Buffer.from(entry.text);
      yield headerOf(entry, '0', content.length);
      yield Buffer.concat([content, padding(content.length)]);
    } else {
      yield headerOf(entry, '5', 0);
    }
  }
  yield Buffer.alloc(2 * blockBytes);
}

/** The ustar checksum counts its own field as spaces. */
function headerOf({ path, mode }: TarEntry, type: string, size: number): Buffer {
  if (path.length > 100) throw new Error(`The path is too long for this archive: ${path}`);
  const header = Buffer.alloc(blockBytes);
  header.write(path, 0);
  header.write(octal(mode, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  header.write(octal(size, 11), 124);
  header.write(octal(0, 11), 136);
  header.write(' '.repeat(8), 148);
  header.write(type, 156);
  header.write('ustar\x0000', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 6)}\0 `, 148);
  return header;
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, '0');
}

function padding(size: number): Buffer {
  return Buffer.alloc((blockBytes - (size % blockBytes)) % blockBytes);
}
