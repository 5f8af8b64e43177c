import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { serverView } from '../../../test/helpers/server-view.ts';
import type { ServerView } from '../../api/views.ts';
import { newServer, serverChanges } from './flags.ts';

/** A server as the API shows it, with overrides. */
function details(otherwise: Partial<ServerView> = {}): ServerView {
  return {
    ...serverView({ transport: 'stdio' }),
    project: 'default',
    source: 'api',
    product: null,
    description: null,
    config: { command: 'npx', args: ['-y', 'files'], env: { LEVEL: 'info', KEY: 'k' }, cwd: '/srv' },
    enabled: true,
    replica_count: 1,
    concurrency: 32,
    isolation: 'shared',
    timeout_ms: 30_000,
    max_timeout_ms: 600_000,
    idle_stop_ms: 0,
    prefix: null,
    version: 1,
    ...otherwise,
  } as ServerView;
}

const remote = details({
  transport: 'sse',
  config: { url: 'https://example.org/sse', headers: { A: '1', B: '2' } },
});

describe('newServer', () => {
  it('creates a command with its options', () => {
    const flags = {
      env: { A: 'b' },
      cwd: '.',
      label: { region: 'eu' },
      replicas: 2,
      timeoutMs: 5,
      disabled: true,
    };
    expect(newServer('files', ['npx', '-y', 'x'], flags)).toEqual({
      name: 'files',
      transport: 'stdio',
      config: { command: 'npx', args: ['-y', 'x'], env: { A: 'b' }, cwd: process.cwd() },
      labels: { region: 'eu' },
      replicas: 2,
      timeout_ms: 5,
      enabled: false,
    });
  });

  it('creates an endpoint with its options', () => {
    const flags = {
      endpoint: 'https://example.org',
      header: { A: 'b' },
      description: 'Far away',
      idleStopMs: 0,
    };
    expect(newServer('far', [], flags)).toEqual({
      name: 'far',
      transport: 'http',
      config: { url: 'https://example.org', headers: { A: 'b' } },
      description: 'Far away',
      idle_stop_ms: 0,
    });
    expect(newServer('far', [], { ...flags, transport: 'sse' })).toMatchObject({ transport: 'sse' });
  });

  it.each([
    ['./run.sh', resolve('run.sh')],
    ['bin/run', resolve('bin/run')],
    ['/opt/run', '/opt/run'],
    ['node', 'node'],
  ])('resolves the command %s in the current directory', (command, found) => {
    expect(newServer('files', [command], {})).toMatchObject({ config: { command: found } });
  });

  it.each<[string, string[], object, string]>([
    ['nothing', [], {}, 'A server needs a command or an endpoint'],
    ['both', ['x'], { endpoint: 'https://example.org' }, 'use one of them'],
    [
      'a header for a command',
      ['x'],
      { header: { a: 'b' } },
      '--header is only for servers with an --endpoint',
    ],
    ['a transport for a command', ['x'], { transport: 'sse' }, '--transport is only for'],
    ['a variable for an endpoint', [], { endpoint: 'https://x', env: { a: 'b' } }, '--env is only for'],
    ['a folder for an endpoint', [], { endpoint: 'https://x', cwd: '/' }, '--cwd is only for'],
  ])('rejects %s', (_what, command, flags, reason) => {
    expect(() => newServer('files', command, flags)).toThrow(reason);
  });
});

describe('serverChanges', () => {
  it('keeps what is not named', () => {
    expect(serverChanges(details(), [], { env: { LEVEL: 'debug' }, concurrency: 1 })).toEqual({
      config: { command: 'npx', args: ['-y', 'files'], env: { LEVEL: 'debug', KEY: 'k' }, cwd: '/srv' },
      concurrency: 1,
    });
    expect(serverChanges(details(), ['uvx', 'files'], {})).toEqual({
      config: { command: 'uvx', args: ['files'], env: { LEVEL: 'info', KEY: 'k' }, cwd: '/srv' },
    });
    expect(serverChanges(remote, [], { endpoint: 'https://example.org/2' })).toEqual({
      config: { url: 'https://example.org/2', headers: { A: '1', B: '2' } },
    });
  });

  it('removes what is unset', () => {
    const unset = ['env.KEY', 'cwd', 'group', 'timeout-ms', 'description', 'label.region'];
    expect(serverChanges(details({ labels: { region: 'eu', tier: '1' } }), [], { unset })).toEqual({
      config: { command: 'npx', args: ['-y', 'files'], env: { LEVEL: 'info' } },
      labels: { tier: '1' },
      group: null,
      timeout_ms: null,
      description: null,
    });
    expect(serverChanges(remote, [], { unset: ['header.A'] })).toEqual({
      config: { url: 'https://example.org/sse', headers: { B: '2' } },
    });
  });

  it('converts a server from one kind to the other', () => {
    expect(serverChanges(details(), [], { endpoint: 'https://example.org' })).toEqual({
      transport: 'http',
      config: { url: 'https://example.org' },
    });
    expect(serverChanges(remote, ['npx', 'x'], {})).toEqual({
      transport: 'stdio',
      config: { command: 'npx', args: ['x'] },
    });
  });

  it('changes only the transport or the name', () => {
    expect(serverChanges(remote, [], { transport: 'http' })).toEqual({ transport: 'http' });
    expect(serverChanges(remote, [], { name: 'other' })).toEqual({ name: 'other' });
  });

  it.each<[string, object, string]>([
    ['nothing', {}, 'Nothing to change'],
    ['a change without effect', { env: { LEVEL: 'info' } }, 'Nothing to change'],
    ['an option that cannot be unset', { unset: ['command'] }, '"command" cannot be unset'],
    ['a variable without a name', { unset: ['env.'] }, '"env." cannot be unset'],
    ['a header for a command', { header: { a: 'b' } }, '--header is only for'],
  ])('rejects %s', (_what, flags, reason) => {
    expect(() => serverChanges(details(), [], flags)).toThrow(reason);
  });
});
