import { describe, expect, it } from 'vitest';
import { importJsonOrToml, importText } from './import.ts';

const options = { target: 'file', folder: '/home/ada' } as const;

function read(document: object, file = '/home/ada/settings.json', projectFolder?: string) {
  return importText(JSON.stringify(document), file, { ...options, projectFolder });
}

describe('servers of other programs', () => {
  it('Claude Code: global servers, and those of the project in a folder', () => {
    const file = {
      numStartups: 7,
      mcpServers: { shared: { type: 'stdio', command: 'a', args: [], env: {} }, both: { command: 'b' } },
      projects: {
        '/home/ada/site': {
          mcpServers: { both: { command: 'c' }, site: { type: 'http', url: 'https://x/mcp' } },
        },
        '/home/ada': { mcpServers: { home: { command: 'd' } } },
        '/home/ada/empty': { mcpServers: {}, allowedTools: [] },
      },
    };
    const inside = read(file, '/home/ada/.claude.json', '/home/ada/site/src');
    expect(inside.mcpServers).toEqual({
      shared: { type: 'stdio', command: 'a', args: [], env: {} },
      both: { command: 'c' },
      site: { type: 'http', url: 'https://x/mcp' },
    });
    expect(inside.notes).toEqual([
      'left out: the servers of the project /home/ada (home): import them with --folder /home/ada',
    ]);
    expect(Object.keys(read(file, '/home/ada/.claude.json', '/home/ada/sitemap').mcpServers)).toEqual([
      'shared',
      'both',
      'home',
    ]);
    expect(Object.keys(read(file, '/home/ada/.claude.json', '/srv').mcpServers)).toEqual(['shared', 'both']);
    expect(read({ projects: {} }).mcpServers).toEqual({});
  });

  it('Codex: TOML, with its variables and timeouts in seconds', async () => {
    const text = `
model = "gpt-5" # a comment
[mcp_servers.docs]
command = "npx"
args = ["-y", "docs"]
env_vars = ["DOCS_KEY"]
startup_timeout_sec = 20
tool_timeout_sec = 90.5
disabled_tools = ["delete"]
[mcp_servers.docs.env]
LEVEL = "info"
[mcp_servers."far away"]
url = "https://example.com/mcp"
bearer_token_env_var = "FAR_TOKEN"
http_headers = { "X-Region" = "eu" }
env_http_headers = { "X-Key" = "FAR_KEY" }
enabled = false
`;
    for (const file of ['/home/ada/.codex/config.toml', 'stdin']) {
      expect((await importJsonOrToml(text, file, options)).mcpServers).toEqual({
        docs: {
          command: 'npx',
          args: ['-y', 'docs'],
          env: { DOCS_KEY: `\${DOCS_KEY}`, LEVEL: 'info' },
          timeoutMs: 90_500,
          tools: { deny: ['delete'] },
        },
        'far away': {
          url: 'https://example.com/mcp',
          headers: { 'X-Region': 'eu', 'X-Key': `\${FAR_KEY}`, Authorization: `Bearer \${FAR_TOKEN}` },
          enabled: false,
        },
      });
    }
    expect((await importJsonOrToml(text, '/home/ada/config.toml', options)).notes).toContainEqual(
      expect.stringMatching(/^docs: "startup_timeout_sec" was left out: here "connectTimeoutMs" /),
    );
    await expect(importJsonOrToml('[mcp_servers.x]\ncommand = ', '/a.toml', options)).rejects.toThrow(
      /^\/a\.toml:2:\d+: not valid TOML: /,
    );
  });

  it('Zed: both formats, with timeouts in seconds', () => {
    const context_servers = {
      now: { source: 'custom', command: 'a', args: ['b'], env: { C: 'd' }, timeout: 90, enabled: true },
      once: { command: { path: 'a', args: ['b'], env: null }, settings: {} },
      far: { url: 'https://x/mcp', headers: { A: 'b' } },
      extension: { source: 'extension', settings: {} },
    };
    const { mcpServers, notes } = read({ context_servers, theme: 'dark' });
    expect(mcpServers).toEqual({
      now: { command: 'a', args: ['b'], env: { C: 'd' }, timeoutMs: 90_000 },
      once: { command: 'a', args: ['b'] },
      far: { url: 'https://x/mcp', headers: { A: 'b' } },
    });
    expect(notes).toContainEqual('left out: extension: it is an extension, which only Zed can run');
  });

  it.each(['mcp', 'mcp.servers'])('OpenCode: under %s, with timeouts in milliseconds', (place) => {
    const servers = {
      near: { type: 'local', command: ['npx', '-y', 'x'], environment: { KEY: '{env:KEY}' }, timeout: 3_000 },
      far: { type: 'remote', url: 'https://x/mcp', headers: { A: 'Bearer {env:T}' }, enabled: false },
      newer: { type: 'local', command: ['x'], timeout: { startup: 1, request: 5_000 } },
    };
    const document = place === 'mcp' ? { mcp: servers } : { mcp: { servers } };
    expect(read(document).mcpServers).toEqual({
      near: { command: 'npx', args: ['-y', 'x'], env: { KEY: `\${KEY}` }, timeoutMs: 3_000 },
      far: { url: 'https://x/mcp', headers: { A: `Bearer \${T}` }, enabled: false },
      newer: { command: 'x', timeoutMs: 5_000 },
    });
  });

  it('Cline: timeouts in seconds', () => {
    const near = { command: 'a', autoApprove: ['x'], disabled: false, timeout: 120 };
    const far = { type: 'streamableHttp', url: 'https://x/mcp', timeout: 60 };
    expect(read({ mcpServers: { near, far } }, '/x/cline_mcp_settings.json')).toMatchObject({
      mcpServers: {
        near: { command: 'a', timeoutMs: 120_000 },
        far: { type: 'http', url: 'https://x/mcp', timeoutMs: 60_000 },
      },
      notes: expect.arrayContaining(['near: "timeout" is "timeoutMs": 120000 here']),
    });
  });

  it.each(['/root/mcp.json', '/home/roo/.cursor/mcp.json', '/srv/declined/mcp.json'])(
    'does not mistake another file for one of Cline: %s',
    (file) => {
      const mcpServers = { a: { command: 'a', timeout: 60_000 } };
      expect(read({ mcpServers }, file).mcpServers).toEqual({ a: { command: 'a', timeoutMs: 60_000 } });
    },
  );

  it.each(['/x/rooveterinaryinc.roo-cline/settings/mcp_settings.json', '/x/.roo/mcp.json'])(
    'recognizes the files of Cline forks: %s',
    (file) => {
      const mcpServers = { a: { command: 'a', timeout: 3_700 } };
      expect(read({ mcpServers }, file).mcpServers).toEqual({ a: { command: 'a', timeoutMs: 3_700_000 } });
    },
  );

  it('leaves out Switchboard itself', () => {
    const mcpServers = { switchboard: { url: 'http://localhost:7400/mcp' }, other: { command: 'a' } };
    const imported = importText(JSON.stringify({ mcpServers }), '/home/ada/mcp.json', {
      ...options,
      ownUrl: 'http://127.0.0.1:7400',
    });
    expect(Object.keys(imported.mcpServers)).toEqual(['other']);
    expect(imported.notes).toEqual(['left out: switchboard: it is Switchboard itself']);
  });

  it('Windsurf: its key for URLs, and its disabled tools', () => {
    const far = { serverUrl: 'https://x/mcp', headers: { A: `\${env:T}` }, disabledTools: ['delete'] };
    expect(read({ mcpServers: { far } }).mcpServers).toEqual({
      far: { url: 'https://x/mcp', headers: { A: `\${env:T}` }, tools: { deny: ['delete'] } },
    });
  });

  it('Gemini CLI: url is HTTP+SSE, httpUrl is not, and timeouts in milliseconds', () => {
    const mcpServers = {
      streaming: { httpUrl: 'https://x/mcp', headers: { A: 'Bearer $TOKEN' }, timeout: 2_000 },
      sse: { url: 'https://x/sse' },
      typed: { url: 'https://x/mcp', type: 'http' },
      near: {
        command: 'a',
        env: { A: '$B', C: `\${D}` },
        includeTools: ['read(path)'],
        excludeTools: ['rm'],
      },
    };
    expect(read({ mcpServers, mcp: { allowed: ['sse'] } }).mcpServers).toEqual({
      streaming: { type: 'http', url: 'https://x/mcp', headers: { A: `Bearer \${TOKEN}` }, timeoutMs: 2_000 },
      sse: { type: 'sse', url: 'https://x/sse' },
      typed: { type: 'http', url: 'https://x/mcp' },
      near: { command: 'a', env: { A: `\${B}`, C: `\${D}` }, tools: { allow: ['read'], deny: ['rm'] } },
    });
    const only = { mcpServers: { sse: mcpServers.sse } };
    expect(read(only, '/home/ada/.gemini/settings.json').mcpServers).toEqual({
      sse: { type: 'sse', url: 'https://x/sse' },
    });
    expect(read(only, '/home/ada/.cursor/mcp.json').mcpServers).toEqual({ sse: { url: 'https://x/sse' } });
  });

  it('others: a timeout is in seconds if it would be too short in milliseconds', () => {
    const mcpServers = { a: { command: 'a', timeout: 60 }, b: { command: 'b', timeout: 60_000 } };
    expect(read({ mcpServers }).mcpServers).toEqual({
      a: { command: 'a', timeoutMs: 60_000 },
      b: { command: 'b', timeoutMs: 60_000 },
    });
  });
});
