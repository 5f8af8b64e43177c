import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { type ApiAnswers, runWith } from '../../../test/helpers/cli-api.ts';
import { hostedView } from '../../../test/helpers/hosted-view.ts';
import { afterNoon, noon } from '../../../test/helpers/server-view.ts';
import { hostedNotes, hostedRow, uptimeText } from './text.ts';

const time = hostedView();
const path = `/mcp/servers/${time.id}`;
const listed: ApiAnswers = { 'GET /mcp/servers': { servers: [time] } };

/** Lines as the API sends them to subscribers; `isOver` ends the stream. */
function lines(texts: string[], isOver = true): (response: ServerResponse) => void {
  return (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(': keep-alive\n\n');
    for (const line of texts) {
      response.write(`event: line\ndata: ${JSON.stringify({ at: noon.toISOString(), line })}\n\n`);
    }
    if (isOver) response.end();
  };
}

describe('switchboard host', () => {
  const added = { ...time, status: 'starting' };

  it('sends only the options given', async () => {
    const { code, requests } = await runWith(
      { 'POST /mcp/servers': added },
      ...['host', 'mcp/time', '--name', 'time', '--detach'],
    );
    expect({ code, requests }).toEqual({
      code: 0,
      requests: ['POST /mcp/servers {"name":"time","project_id":"default","image":"mcp/time"}'],
    });
  });

  it('sends all options', async () => {
    const { requests } = await runWith(
      { 'POST /mcp/servers': added },
      ...['host', 'node:24', '--name', 'mine', '-P', 'web', '--volume', '/data', '--volume', '/cache'],
      ...[
        '--env',
        'A=b=c',
        '-e',
        `T=\${T}`,
        '--cpu',
        '0.5',
        '--memory',
        '1G',
        '--disk',
        '2G',
        '--pids',
        '64',
      ],
      ...['--provider', 'docker', '--restart', 'on-failure', '--network', '--writable-root', '-d'],
      ...['--', 'node', '--json', 'server.js'],
    );
    expect(JSON.parse(requests[0]!.replace('POST /mcp/servers ', ''))).toEqual({
      ...{ name: 'mine', project_id: 'web', image: 'node:24', command: 'node' },
      ...{ args: ['--json', 'server.js'], volumes: ['/data', '/cache'] },
      ...{ environment: { A: 'b=c', T: `\${T}` }, provider: 'docker', restart_policy: 'on-failure' },
      ...{ network: true, writable_root: true },
      resource_limits: { cpu: '0.5', memory: '1G', disk: '2G', pids: 64 },
    });
  });

  it.each([
    [[], { stdio_bridge: false }],
    [['--stdio'], { stdio_bridge: true }],
    [['--path', '/x'], { stdio_bridge: false, path: '/x' }],
  ])('uses HTTP for a port, except for %j', async (words, expected) => {
    const { requests } = await runWith(
      { 'POST /mcp/servers': added },
      ...['host', 'a/b', '--name', 'x', '--port', '8080', '-d', ...words],
    );
    const { name, project_id, image, ...rest } = JSON.parse(requests[0]!.replace('POST /mcp/servers ', ''));
    expect({ name, project_id, image }).toEqual({ name: 'x', project_id: 'default', image: 'a/b' });
    expect(rest).toEqual({ port: 8080, ...expected });
  });

  it('publishes a port on request', async () => {
    const words = ['host', 'a/b', '--name', 'x', '-d', '--port'];
    const { requests } = await runWith({ 'POST /mcp/servers': added }, ...words, '8080:18080');
    expect(requests[0]).toContain('"port":{"container":8080,"host":18080},"stdio_bridge":false');
    const refused = await runWith({}, ...words, '8080:');
    expect(refused).toMatchObject({ code: 2, requests: [] });
    expect(refused.stderr).toContain('Use 8080 or 8080:18080.');
  });

  it('treats a command without an image as a process', async () => {
    const { requests } = await runWith(
      { 'POST /mcp/servers': added },
      ...['host', '--name', 'x', '--provider', 'process', '-d', '--', 'node', 'server.js'],
    );
    expect(requests).toEqual([
      'POST /mcp/servers {"name":"x","project_id":"default","command":"node","args":["server.js"],"provider":"process"}',
    ]);
  });

  it.each([
    [['host', '--name', 'x'], 'There is no image to run'],
    [['host', '--name', 'x', '--provider', 'process'], 'There is no command to run'],
    [['host', 'mcp/time'], "required option '--name <name>' not specified"],
    [['host', 'mcp/time', '--name', 'x', '--env', 'secret'], '--env takes NAME=value.'],
    [
      ['host', 'mcp/time', '--name', 'x', '--provider', 'podman'],
      'gvisor, firecracker, e2b, docker, process',
    ],
  ])('rejects %j', async (words, message) => {
    const { code, stderr, requests } = await runWith({}, ...words);
    expect({ code, requests }).toEqual({ code: 2, requests: [] });
    expect(stderr).toContain(message);
  });

  it('shows the log until the server is ready and its tools are known', async () => {
    const ready = { ...time, url: 'http://127.0.0.1:49153' };
    const { code, stdout, stderr } = await runWith(
      {
        'POST /mcp/servers': added,
        [`GET ${path}/logs?follow=1`]: lines(['pulling mcp/time: 40 %', 'started'], false),
        [`GET ${path}`]: [added, { ...ready, tool_count: null }, ready],
      },
      ...['host', 'mcp/time', '--name', 'time'],
    );
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: 'time is ready (gvisor, 2 tools, http://127.0.0.1:49153)\n',
    });
    expect(stderr).toBe('added hosted server time to project default\n  pulling mcp/time: 40 %\n  started\n');
  });

  it.each(['failed', 'backing_off', 'waiting', 'stopped'])('reports why it is %s', async (status) => {
    const failed = { ...time, status, error: 'The image is not there.\n  Build it.' };
    const answers = {
      'POST /mcp/servers': added,
      [`GET ${path}/logs?follow=1`]: lines(['no such image\n  Build it.']),
      [`GET ${path}`]: failed,
    };
    const { code, stdout, stderr } = await runWith(answers, 'host', 'mcp/time', '--name', 'time');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('  no such image\n');
    expect(stderr.split('Build it.')).toHaveLength(2);
    expect(stderr).toContain(
      `time is ${status.replaceAll('_', ' ')}: The image is not there.\n  Build it.\n`,
    );
    const asJson = await runWith(answers, 'host', 'mcp/time', '--name', 'time', '--json');
    expect(asJson).toMatchObject({ code: 1, stderr: '' });
    expect(JSON.parse(asJson.stdout)).toEqual(failed);
  });
});

describe('switchboard hosted', () => {
  const down = hostedView({
    ...{ id: '0190f3a0-0000-7000-8000-0000000000bb', name: 'notes', project: 'web', image: 'a/notes:2' },
    ...{ status: 'backing_off', container_status: 'restarting', restart_count: 4, uptime_seconds: null },
    ...{ error: 'It exited with code 1.', next_try: afterNoon(15_000), health: 'warning' },
  });

  it('lists hosted servers', async () => {
    const answers = { 'GET /mcp/servers': { servers: [time, { ...down, next_try: null }] } };
    const { stdout } = await runWith(answers, 'hosted');
    expect(stdout.split('\n')).toEqual([
      'time   default  ready        gvisor  mcp/time               up 90 s',
      'notes  web      backing off  gvisor  a/notes:2  4 restarts           It exited with code 1.',
      '',
    ]);
    expect(JSON.parse((await runWith(answers, 'hosted', '--json')).stdout)).toHaveLength(2);
    const long = { ...down, error: `Nothing can be used:\n  ${'x'.repeat(500)}`, next_try: null };
    const { stdout: short } = await runWith({ 'GET /mcp/servers': { servers: [long] } }, 'hosted');
    expect(short).toMatch(/ {2}Nothing can be used:\n$/);
    expect((await runWith({ 'GET /mcp/servers': { servers: [] } }, 'hosted', 'ls')).stdout).toBe(
      'no hosted servers\n',
    );
    const only = await runWith({ 'GET /mcp/servers?project=web': { servers: [] } }, 'hosted', '-P', 'web');
    expect(only.code).toBe(0);
  });

  it('shows one, without the values of its environment', async () => {
    const server = {
      ...time,
      ...{ environment: ['TOKEN'], volumes: ['/data'], args: ['-v', 'a b'], command: 'node' },
      last_crash: { at: noon.toISOString(), exit_code: 1, signal: null, reason: 'It exited with code 1' },
      usage: {
        cpu_percent: 2.25,
        memory_bytes: 3 * 1024 ** 2,
        memory_limit_bytes: 512 * 1024 ** 2,
        disk_bytes: null,
      },
    };
    const { stdout } = await runWith({ ...listed, [`GET ${path}`]: server }, 'hosted', 'show', 'time');
    expect(stdout).toMatch(/^status +ready$/m);
    expect(stdout).toMatch(/^environment +TOKEN \(values are not shown\)$/m);
    expect(stdout).toMatch(/^arguments +"-v" "a b"$/m);
    expect(stdout).toMatch(/^last crash +\S+ \S+: It exited with code 1$/m);
    expect(stdout).toMatch(/^limits +0.5 CPU, 512M memory, 1G disk, 128 processes$/m);
    expect(stdout).toMatch(/^usage +2\.\d % of a core, 3.0 MB of 512.0 MB memory$/m);
    const asJson = await runWith({ ...listed, [`GET ${path}`]: server }, 'hosted', 'show', 'time', '--json');
    expect(JSON.parse(asJson.stdout)).toEqual(server);
  });

  it('shows the address, that a port implies a network, and the names of the volumes', async () => {
    const server = {
      ...time,
      ...{ stdio_bridge: false, port: 8080, path: '/mcp', url: 'http://127.0.0.1:49153', network: false },
      ...{ volumes: ['/data'], volume_names: ['switchboard-1234'] },
    };
    const { stdout } = await runWith({ ...listed, [`GET ${path}`]: server }, 'hosted', 'show', 'time');
    expect(stdout).toMatch(/^address +http:\/\/127\.0\.0\.1:49153\/mcp$/m);
    expect(stdout).toMatch(/^network +yes \(by its port\)$/m);
    expect(stdout).toMatch(/^kept in +switchboard-1234$/m);
  });

  it('shows the next retry and the uptime', () => {
    expect(hostedNotes(down, noon)).toBe('It exited with code 1. · next try in 15 s');
    expect(hostedNotes({ ...down, error: null, next_try: null }, noon)).toBe('health warning');
    expect(hostedRow({ ...time, image: null, command: 'node', provider: null }, noon).slice(3, 5)).toEqual([
      '',
      'node',
    ]);
    const uptimes = [null, 0, 119.9, 120, 7_199, 7_200, 172_800].map((uptime_seconds) =>
      uptimeText({ uptime_seconds }),
    );
    expect(uptimes).toEqual(['', 'up 0 s', 'up 119 s', 'up 2 min', 'up 119 min', 'up 2 h', 'up 2 days']);
  });
});

describe('a hosted server', () => {
  it.each([
    ['restart', 'time is ready\n'],
    ['start', 'time is ready (gvisor, 2 tools)\n'],
    ['stop', 'time is stopped\n'],
  ])('accepts the command %s', async (word, said) => {
    const after = word === 'stop' ? { ...time, status: 'stopped' } : time;
    const answers = { ...listed, [`POST ${path}/${word}`]: after };
    const { code, stdout, requests } = await runWith(answers, word, 'time');
    expect({ code, stdout }).toEqual({ code: 0, stdout: said });
    expect(requests.slice(0, 2)).toEqual(['GET /mcp/servers', `POST ${path}/${word}`]);
    expect(JSON.parse((await runWith(answers, word, time.id, '--json')).stdout)).toEqual(after);
  });

  it('is awaited when it stops or starts, unless -d is given', async () => {
    const off = { ...time, status: 'stopped', enabled: false };
    const stopping = { ...listed, [`POST ${path}/stop`]: time, [`GET ${path}`]: [time, off] };
    expect(await runWith(stopping, 'stop', 'time')).toMatchObject({ code: 0, stdout: 'time is stopped\n' });
    const detached = await runWith(stopping, 'stop', 'time', '-d');
    expect(detached).toMatchObject({ code: 0, stdout: 'time is stopping\n' });
    expect(detached.requests).toEqual(['GET /mcp/servers', `POST ${path}/stop`]);

    const starting = { ...time, status: 'starting' };
    const failed = { ...time, status: 'failed', error: 'The image is not there.', health: 'warning' };
    const answers = { ...listed, [`POST ${path}/start`]: starting };
    expect(await runWith({ ...answers, [`GET ${path}`]: [starting, failed] }, 'start', 'time')).toMatchObject(
      {
        code: 1,
        stdout: '',
        stderr: expect.stringContaining('time is failed: The image is not there.\n'),
      },
    );
    expect(await runWith({ ...answers, [`GET ${path}`]: time }, 'start', 'time')).toMatchObject({ code: 0 });
    const unwatched = await runWith(answers, 'start', 'time', '--detach');
    expect(unwatched).toMatchObject({ code: 0, stdout: 'time is starting\n' });
  });

  it('is changed and awaited: the exit code reports the result', async () => {
    const words = ['hosted', 'set', 'time', '--image', 'mcp/time:2', '--memory', '1G'];
    const restarting = { ...time, status: 'restarting' };
    const old = { at: '2020-01-01T00:00:00.000Z', line: 'of long ago' };
    const told = { at: '2999-01-01T00:00:00.000Z', line: 'pulling the image' };
    const log = (response: ServerResponse) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const line of [old, told]) response.write(`event: line\ndata: ${JSON.stringify(line)}\n\n`);
    };
    const answers = {
      ...listed,
      [`PATCH ${path}`]: restarting,
      [`GET ${path}/logs?follow=1`]: log,
    };
    const done = await runWith({ ...answers, [`GET ${path}`]: [restarting, time] }, ...words);
    expect(done).toMatchObject({ code: 0, stdout: 'time is ready (gvisor, 2 tools)\n' });
    expect(done.stderr).toBe('changed hosted server time\n  pulling the image\n');
    expect(done.requests[1]).toBe(`PATCH ${path} {"resource_limits":{"memory":"1G"},"image":"mcp/time:2"}`);
    const behind = { ...time, error: 'The new image is not available, so the old instance keeps running.' };
    expect(await runWith({ ...answers, [`GET ${path}`]: behind }, ...words)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('the old instance keeps running.'),
    });
    const off = { ...time, status: 'stopped', enabled: false };
    expect(await runWith({ ...answers, [`PATCH ${path}`]: off }, ...words)).toMatchObject({
      code: 0,
      stdout: 'time is stopped; start it with: switchboard start time\n',
    });
  });

  it('is changed only in the given options', async () => {
    const change = async (...words: string[]) => {
      const answers = { ...listed, [`PATCH ${path}`]: time };
      const { requests, code, stderr } = await runWith(answers, 'hosted', 'set', 'time', '-d', ...words);
      return requests[1]?.replace(`PATCH ${path} `, '') ?? `${code} ${stderr}`;
    };
    expect(await change('--env', 'A=b', '--unset-env', 'C')).toBe('{"environment":{"A":"b","C":null}}');
    expect(await change('--arg', 'x', '--arg', 'y')).toBe('{"args":["x","y"]}');
    expect(await change('--', 'node', 'server.js')).toBe('{"args":["server.js"],"command":"node"}');
    expect(await change('--no-network', '--writable-root')).toBe('{"network":false,"writable_root":true}');
    expect(await change('--port', '8080:18080')).toBe(
      '{"port":{"container":8080,"host":18080},"stdio_bridge":false}',
    );
    expect(await change()).toContain('2 error: Nothing to change');
    expect(await change('--arg', 'x', '--', 'node')).toContain('2 error: --arg and a command');
  });

  it('must be named unambiguously', async () => {
    const twice = { 'GET /mcp/servers': { servers: [time, { ...time, id: 'other', project: 'web' }] } };
    const { code, stderr } = await runWith(twice, 'restart', 'time');
    expect(code).toBe(1);
    expect(stderr).toContain('choose one with -P (default, web).');
    const unknown = await runWith(listed, 'stop', 'tine');
    expect(unknown).toMatchObject({ code: 1 });
    expect(unknown.stderr).toContain('There is no hosted server "tine". There are: time.');
  });

  it('is removed, with its volumes only with --volumes and --yes', async () => {
    const servers = [{ ...time, volumes: ['/data'] }];
    const answers = {
      'GET /mcp/servers': { servers },
      [`DELETE ${path}`]: null,
      [`DELETE ${path}?volumes=delete`]: null,
    };
    const kept = await runWith(answers, 'rm', 'time');
    expect(kept.requests.at(-1)).toBe(`DELETE ${path}`);
    expect(kept.stdout).toContain('its volumes are kept');
    expect(kept.stdout).toContain('To remove them: switchboard rm time --volumes\n');
    const refused = await runWith(answers, 'rm', 'time', '--volumes');
    expect(refused).toMatchObject({ code: 2, requests: ['GET /mcp/servers'] });
    const gone = await runWith(answers, 'rm', 'time', '--volumes', '--yes', '--json');
    expect(gone.requests.at(-1)).toBe(`DELETE ${path}?volumes=delete`);
    expect(JSON.parse(gone.stdout)).toEqual({ removed: 'time', id: time.id, unused_secrets: [] });
  });
});

describe('switchboard logs', () => {
  const kept = [
    { at: noon.toISOString(), line: 'one' },
    { at: afterNoon(1), line: 'two' },
  ];
  const logs = { [`GET ${path}/logs`]: { lines: kept } };

  it('shows the log of a hosted server', async () => {
    const { stdout: text } = await runWith({ ...listed, ...logs }, 'logs', 'time');
    expect(text).toMatch(/^2\d{3}-\d\d-\d\d \d\d:\d\d:\d\d {2}one\n2\S+ \S+ {2}two\n$/);
    const { stdout } = await runWith({ ...listed, ...logs }, 'logs', 'time', '--json');
    expect(JSON.parse(stdout)).toEqual(kept);
  });

  it('follows the log until it ends', async () => {
    const answers = { ...listed, ...logs, [`GET ${path}/logs?follow=1`]: lines(['one', 'two', 'three']) };
    const { code, stdout, stderr } = await runWith(answers, 'logs', '-f', 'time');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^2\S+ \S+ {2}one\n2\S+ \S+ {2}two\n2\S+ \S+ {2}three\n$/);
    expect(stderr).toContain('The log of time has ended');
    const asJson = await runWith(answers, 'logs', '--follow', 'time', '--json');
    expect(
      asJson.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).line),
    ).toEqual(['one', 'two', 'three']);
  });

  it('shows the log of other servers, even if nothing is hosted', async () => {
    const plain = { 'GET /projects/default/servers/files/logs': { lines: ['a', 'b'] } };
    expect((await runWith({ ...listed, ...plain }, 'logs', 'files')).stdout).toBe('a\nb\n');
    expect((await runWith(plain, 'logs', 'files')).stdout).toBe('a\nb\n');
    const followed = await runWith({ ...listed, ...plain }, 'logs', '-f', 'files');
    expect(followed).toMatchObject({ code: 2, stdout: '' });
    expect(followed.stderr).toContain('"files" is not hosted');
  });

  it('prefers the project default, then looks in the others', async () => {
    const web = { ...time, project: 'web' };
    const plain = { 'GET /projects/default/servers/time/logs': { lines: ['plain'] } };
    const servers = { 'GET /mcp/servers': { servers: [web] }, ...logs };
    expect((await runWith({ ...servers, ...plain }, 'logs', 'time')).stdout).toBe('plain\n');
    expect((await runWith(servers, 'logs', 'time')).stdout).toContain('  two\n');
    const inProject = { 'GET /mcp/servers?project=web': { servers: [web] }, ...logs };
    expect((await runWith(inProject, 'logs', 'time', '-P', 'web')).stdout).toContain('  two\n');
    const nobody = await runWith(listed, 'logs', 'nobody');
    expect(nobody).toMatchObject({ code: 1 });
  });
});
