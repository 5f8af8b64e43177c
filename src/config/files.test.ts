import { EventEmitter, on } from 'node:events';
import { writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { importFile, loadConfiguration, watchConfiguration } from '../config.ts';
import { SwitchboardError } from '../errors.ts';
import type { Configuration } from './read.ts';

let folder: string;
let file: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'switchboard-config-'));
  file = join(folder, 'mcp.json');
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

const textWith = (...names: string[]) =>
  JSON.stringify({ mcpServers: Object.fromEntries(names.map((name) => [name, { command: 'x' }])) });
const namesOf = (result: Configuration | SwitchboardError) =>
  result instanceof SwitchboardError ? result.message : result.servers.map(({ name }) => name);

describe('loadConfiguration', () => {
  it('reads a file, even with a byte order mark, and passes warnings on', async () => {
    await writeFile(file, '\uFEFF{"mcpServers": {"a": {"comand": "y", "command": "x"}}}');
    const warnings: string[] = [];
    expect(namesOf(await loadConfiguration(file, (warning) => warnings.push(warning)))).toEqual(['a']);
    expect(warnings).toEqual([
      `${file}: mcpServers.a.comand: is not a known key, so it has no effect; did you mean "command"?`,
    ]);
  });

  it('reports why a file cannot be read', async () => {
    await expect(loadConfiguration(file)).rejects.toThrow(`cannot read ${file}: there is no such file`);
    await expect(loadConfiguration(folder)).rejects.toThrow(`cannot read ${folder}: it is a folder`);
    await writeFile(file, Buffer.from('{"mcpServers": {}}', 'utf16le').fill(0xff, 0, 2));
    await expect(loadConfiguration(file)).rejects.toThrow('it is not UTF-8 text');
  });
});

describe('importFile', () => {
  it('reads the file of another program', async () => {
    await writeFile(file, '{"servers": {"a": {"command": "x"}}, /* VS Code */ }');
    expect(await importFile(file)).toMatchObject({ mcpServers: { a: { command: 'x' } }, notes: [] });
  });
});

describe('watchConfiguration', () => {
  it('reports each change of contents once, however the file is written', async () => {
    writeFileSync(file, textWith('a'));
    await using changes = follow(file);

    writeFileSync(file, textWith('a'));
    writeFileSync(file, textWith('a', 'b'));
    expect(await changes.next()).toEqual(['a', 'b']);

    writeFileSync(join(folder, 'new'), textWith('c'));
    await rename(join(folder, 'new'), file);
    expect(await changes.next()).toEqual(['c']);

    writeFileSync(file, textWith('d'));
    expect(await changes.next()).toEqual(['d']);
  });

  it('reports a broken edit and keeps watching', async () => {
    writeFileSync(file, textWith('a'));
    await using changes = follow(file);

    writeFileSync(file, '{"mcpServers": {"a": {}}}');
    expect(await changes.next()).toContain('mcpServers.a: has neither "command"');
    await rm(file);
    expect(await changes.next()).toContain('there is no such file');
    writeFileSync(file, textWith('a'));
    expect(await changes.next()).toEqual(['a']);
  });

  it('follows a link to a file in another folder, and the link itself', async () => {
    const elsewhere = join(folder, 'elsewhere');
    await mkdir(elsewhere);
    writeFileSync(join(elsewhere, 'real.json'), textWith('a'));
    await symlink(join(elsewhere, 'real.json'), file);
    await using changes = follow(file);

    writeFileSync(join(elsewhere, 'real.json'), textWith('b'));
    expect(await changes.next()).toEqual(['b']);

    writeFileSync(join(elsewhere, 'other.json'), textWith('c'));
    await symlink(join(elsewhere, 'other.json'), join(folder, 'link'));
    await rename(join(folder, 'link'), file);
    expect(await changes.next()).toEqual(['c']);
  });

  it('reports nothing after it is closed', async () => {
    writeFileSync(file, textWith('a'));
    const seen: unknown[] = [];
    const closed = watchConfiguration(file, (result) => seen.push(result));
    closed.close();
    await using changes = follow(file);
    writeFileSync(file, textWith('b'));
    expect(await changes.next()).toEqual(['b']);
    expect(seen).toEqual([]);
  });
});

/** The changes of a file in order, as server names or an error message. */
function follow(path: string) {
  const events = new EventEmitter();
  const watcher = watchConfiguration(path, (result) => events.emit('change', namesOf(result)));
  const changes = on(events, 'change');
  return {
    async next(): Promise<unknown> {
      const { value } = await changes.next();
      return value?.[0];
    },
    async [Symbol.asyncDispose]() {
      watcher.close();
      await changes.return?.();
    },
  };
}
