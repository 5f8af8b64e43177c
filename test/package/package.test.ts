import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const everything = join(root, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const run = promisify(execFile);

describe('the packed tarball, installed into an empty folder', () => {
  let folder: string;
  // The installed command starts with `env node`: that must be the Node that runs the tests.
  const env = { ...process.env, PATH: [dirname(process.execPath), process.env.PATH].join(delimiter) };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'switchboard-package-'));
    await run('npm', ['pack', '--pack-destination', folder], { cwd: root, env });
    const [tarball] = await readdir(folder);
    await writeFile(join(folder, 'package.json'), '{"private": true}\n');
    await run('npm', ['install', `./${tarball}`, '--no-audit', '--no-fund', '--prefer-offline'], {
      cwd: folder,
      env,
    });
  }, 180_000);

  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  it('has the program, its papers and nothing else', async () => {
    const installed = await readdir(join(folder, 'node_modules/switchboard'));
    expect(installed.toSorted()).toEqual(
      ['CHANGELOG.md', 'LICENSE', 'README.md', 'bin', 'dist', 'package.json'].toSorted(),
    );
    const compiled = await readdir(join(folder, 'node_modules/switchboard/dist'), { recursive: true });
    expect(compiled.filter((file) => file.includes('.test.'))).toEqual([]);
  });

  it('gives the command `switchboard`', async () => {
    const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
    const { stdout } = await run('npx', ['--no-install', 'switchboard', '--version'], { cwd: folder, env });
    expect(stdout.trim()).toBe(manifest.version);
  });

  it('serves a call to a configured server over HTTP', async () => {
    const config = join(folder, 'mcp.json');
    await writeFile(
      config,
      JSON.stringify({
        mcpServers: { everything: { command: process.execPath, args: [everything, 'stdio'] } },
      }),
    );
    const program = spawn(
      join(folder, 'node_modules/.bin/switchboard'),
      ['up', '--config', config, '--port', '0', '--json'],
      { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const exit = once(program, 'exit');
    const client = new Client({ name: 'package-test', version: '1.0.0' });
    try {
      await client.connect(new StreamableHTTPClientTransport(new URL(await endpointOf(program))));
      const result = await client.callTool({ name: 'echo', arguments: { message: 'through the package' } });
      expect(result.content).toEqual([{ type: 'text', text: 'Echo: through the package' }]);
    } finally {
      await client.close();
      program.kill('SIGTERM');
    }
    expect(await exit).toEqual([0, null]);
  });
});

/** The URL that the program says it listens on. */
async function endpointOf(program: ChildProcess & { stdout: NodeJS.ReadableStream }): Promise<string> {
  for await (const line of createInterface({ input: program.stdout })) {
    const report: { event: string; url: string } = JSON.parse(line);
    if (report.event !== 'listening') continue;
    // What comes later is nobody's here, but a full pipe would stop the program.
    program.stdout.resume();
    return report.url;
  }
  throw new Error('the program ended before it listened');
}
