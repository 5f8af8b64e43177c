import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadConfiguration } from './load.ts';
import { isSelf } from './self.ts';

const address = 'http://127.0.0.1:7400';

it.each([
  { url: 'http://127.0.0.1:7400/mcp' },
  { url: 'http://localhost:7400/mcp/research' },
  { url: 'http://[::1]:7400/sse' },
  { command: 'switchboard', args: ['stdio'] },
  { command: 'node', args: ['/opt/switchboard/bin/switchboard.js', 'stdio', '--config', '/a/mcp.json'] },
  { command: 'npx', args: ['switchboard', 'stdio', '--url', 'http://localhost:7400/mcp'] },
  { command: 'C:\\bin\\switchboard.cmd', args: ['stdio', '--url=http://127.0.0.1:7400'] },
])('detects that a server is Switchboard itself: %j', (reach) => {
  expect(isSelf(reach, address)).toBe(true);
});

it.each([
  { url: 'http://127.0.0.1:7401/mcp' },
  { url: 'http://127.0.0.1:7400/other' },
  { url: 'https://example.com:7400/mcp' },
  { url: `\${ADDRESS}/mcp` },
  { command: 'node', args: ['server.js', 'stdio'] },
  { command: 'npx', args: ['-y', 'switchboard-tools', 'stdio'] },
  { command: 'switchboard', args: ['stdio', '--url', 'https://example.com'] },
  { command: 'switchboard', args: ['stdio'], env: { SWITCHBOARD_URL: 'http://127.0.0.1:9000' } },
])('does not mistake another server for Switchboard: %j', (reach) => {
  expect(isSelf(reach, address)).toBe(false);
});

it('warns about servers with access to the folder of the configuration file', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'switchboard-self-'));
  try {
    await mkdir(join(folder, 'work', 'notes'), { recursive: true });
    await symlink(folder, join(folder, 'work', 'link'));
    const file = join(folder, 'work', 'mcp.json');
    const given = (...args: string[]) => ({ command: 'npx', args: ['-y', 'server', ...args] });
    const mcpServers = {
      here: given('.'),
      above: given('notes', folder),
      option: given('--root=..'),
      link: given('./link'),
      variable: given(`\${SELF_TEST_FOLDER}`),
      inside: given('./notes', './mcp.json', '', 'nowhere'),
      off: { ...given('.'), enabled: false },
    };
    await writeFile(file, JSON.stringify({ mcpServers }));
    process.env.SELF_TEST_FOLDER = folder;
    const warnings: string[] = [];
    await loadConfiguration(file, (warning) => warnings.push(warning));
    expect(warnings).toEqual(
      ['here', 'above', 'option', 'link', 'variable'].map((name) =>
        expect.stringMatching(`^${file}: ${name}: .* change this configuration, and so run commands`),
      ),
    );
  } finally {
    delete process.env.SELF_TEST_FOLDER;
    await rm(folder, { recursive: true });
  }
});
