import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import { bridgeProgram } from '../helpers/bridge.ts';
import { type Finished, type RunningCli, runCli, startCli, temporaryFolder } from '../helpers/cli.ts';
import { connectHttp, connectStdio, textOf } from '../helpers/clients.ts';
import { makeIdentity } from '../helpers/identity.ts';
import { requireOtherUser, startAsOther } from '../helpers/other-user.ts';
import { setUp } from '../helpers/set-up.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';
import { addressed } from './project-commands.ts';

const box = fixtureServer('toolbox');
const keyForm = /^sbk_[\w-]{55}\n$/;

let switchboard: RunningSwitchboard;
/** A home without a token, as on another machine. */
let elsewhere: string;

setUp(async (use) => {
  switchboard = use(await startSwitchboard({ box }, {}, { args: ['--auth'], database: 'shared' }));
  elsewhere = use(await temporaryFolder()).path;
});

function run(words: string[], env: Record<string, string>): Promise<Finished> {
  return runCli(addressed(switchboard, words), { env: { SWITCHBOARD_KEY: '', ...env } });
}

/** As the user of Switchboard. */
function cli(...words: string[]): Promise<Finished> {
  return run(words, { SWITCHBOARD_HOME: switchboard.home });
}

/** As a program elsewhere. */
function cliWith(key: string, ...words: string[]): Promise<Finished> {
  return run(words, { SWITCHBOARD_HOME: elsewhere, SWITCHBOARD_KEY: key });
}

function follow(...words: string[]): RunningCli {
  const env = { SWITCHBOARD_HOME: switchboard.home, SWITCHBOARD_KEY: '' };
  return startCli(addressed(switchboard, [...words, '-f', '--json']), env);
}

async function done(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await cli(...words);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

async function json<Value>(...words: string[]): Promise<Value> {
  return JSON.parse(await done(...words, '--json')) as Value;
}

async function addKey(name: string, ...words: string[]): Promise<string> {
  const { code, stdout } = await cli('key', 'add', name, ...words);
  expect([code, stdout]).toEqual([0, expect.stringMatching(keyForm)]);
  return stdout.trim();
}

async function statusOf(key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}` };
  return (await fetch(`${switchboard.baseUrl}/api/v1/whoami`, { headers })).status;
}

describe('a key', () => {
  it('is printed once, alone, and with what to do with it', async () => {
    const { code, stdout, stderr } = await cli('key', 'add', 'once', '-P', 'default', '--role', 'caller');
    expect([code, stdout]).toEqual([0, expect.stringMatching(keyForm)]);
    const key = stdout.trim();
    expect(stderr).toContain('The key once has the role caller in the project default.');
    expect(stderr).toContain('in 90 days');
    expect(stderr).toContain(`"url":"${switchboard.baseUrl}/mcp/default"`);
    expect(stderr).toContain('--header "Authorization: Bearer <key>"');
    const shown = await Promise.all([
      done('key', 'ls'),
      json('key', 'show', 'once'),
      json('key', 'ls'),
      done('audit', '--json'),
    ]);
    const all = [stderr, JSON.stringify(shown), JSON.stringify(switchboard.events)].join();
    expect(all).not.toContain(key);
    expect(all).not.toContain(key.slice(-43));
    expect(all).not.toContain((await readFile(join(switchboard.home, 'token'), 'utf8')).trim());
    expect(shown[0]).toMatch(/^once +default +caller +expires in 90 days +never used +active$/m);
  });

  it('lets a program in until it is revoked', async () => {
    const key = await addKey('agent', '-P', 'default', '--role', 'caller', '--expires', 'never');
    expect(await done('key', 'show', 'default/agent')).toMatch(/^expires +never$/m);
    const headers = { authorization: `Bearer ${key}` };
    await using connected = await connectHttp(switchboard.url, {}, undefined, headers);
    const result = await connected.client.callTool({ name: 'echo', arguments: { text: 'hello' } });
    expect(textOf(result)).toBe('hello');
    await using following = follow('calls', '--principal', 'agent');
    const call = await following.lines.first(() => true);
    expect(JSON.parse(call)).toMatchObject({ tool: 'echo', principal: { name: 'agent' } });
    expect(await done('calls')).toMatch(/ok +box\/1 +echo .*agent +test-client/);
    expect(await done('key', 'revoke', 'agent')).toBe('revoked key agent\n');
    expect(await statusOf(key)).toBe(401);
    expect((await cli('key', 'show', 'agent')).code).toBe(1);
  });

  it('is rotated: the old one works for the overlap', async () => {
    const first = await addKey('rotated', '--role', 'viewer');
    const { code, stdout, stderr } = await cli('key', 'rotate', 'rotated', '--overlap', '1h');
    expect([code, stdout]).toEqual([0, expect.stringMatching(keyForm)]);
    expect(stderr).toContain('The old one works until it ends in 60 min.');
    const second = stdout.trim();
    expect(await Promise.all([statusOf(first), statusOf(second)])).toEqual([200, 200]);
    expect(await done('key', 'ls')).toMatch(/^rotated +all projects +viewer .* rotating$/m);
    const third = (await cli('key', 'rotate', 'rotated', '--overlap', '0', '--expires', '10d')).stdout.trim();
    expect(await Promise.all([first, second, third].map(statusOf))).toEqual([401, 401, 200]);
    expect(await done('key', 'set', 'rotated', '--name', 'turned')).toMatch(/^name +turned$/m);
    expect(await done('key', 'ls')).toMatch(/^turned .* expires in 10 days .* active$/m);
  });

  it('is for commands elsewhere', async () => {
    const key = await addKey('commands', '-P', 'default', '--role', 'operator');
    const { code, stdout, stderr } = await cliWith(key, 'whoami');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^name +commands\nkind +key\n/);
    expect(stdout).toMatch(/^roles +operator in default$/m);
    expect(stdout).toMatch(/^credential +SWITCHBOARD_KEY$/m);
    expect(await cliWith(key, 'call', 'echo', 'text=hi')).toMatchObject({ code: 0, stdout: 'hi\n' });
    expect((await cliWith(key, 'ls')).stdout).toMatch(/^box +ready/);
    const refused = await cliWith(key, 'key', 'ls');
    expect([refused.code, refused.stdout]).toEqual([1, '']);
    expect(refused.stderr).toMatch(/role owner .*operator.*switchboard role grant owner commands/s);
    for (const { stdout: out, stderr: err } of [refused, await cliWith(key, 'whoami', '--json')]) {
      expect(out + err).not.toContain(key);
    }
  });

  it('is found by its public id', async () => {
    const key = await addKey('public', '-P', 'default', '--role', 'viewer');
    const id = key.slice(0, 16);
    expect(await done('key', 'show', id)).toMatch(/^name +public$/m);
    expect(await done('can', id.slice(4), 'see', '-P', 'default')).toMatch(/^yes: public/);
    const anywhere = await cli('can', id, 'call');
    expect([anywhere.code, anywhere.stdout]).toEqual([
      1,
      'no: public has no role that holds for all projects (it has viewer in default; name a project with -P).\n',
    ]);
    expect(await done('key', 'revoke', id, '-y')).toBe('revoked key public\n');
  });

  it('is for the bridge too', async () => {
    const key = await addKey('bridge', '-P', 'default', '--role', 'caller');
    const program = bridgeProgram(switchboard.baseUrl, elsewhere, null);
    const env = { ...program.env, SWITCHBOARD_KEY: key };
    await using connected = await connectStdio({ ...program, env });
    const result = await connected.client.callTool({ name: 'echo', arguments: { text: 'over stdio' } });
    expect(textOf(result)).toBe('over stdio');
  });
});

describe('the key in SWITCHBOARD_KEY', () => {
  it('also goes to a program of another user on this machine, with a warning', async (test) => {
    requireOtherUser(test);
    const other = startAsOther(
      `const server = require('node:http').createServer(({ headers }, response) => {
        console.log(headers.authorization);
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"roles":[],"groups":[]}');
      });
      server.listen(0, '127.0.0.1', () => console.log(server.address().port));`,
    );
    const lines = createInterface({ input: other.stdout! });
    const [port] = (await once(lines, 'line')) as [string];
    const heard = once(lines, 'line');
    const env = { SWITCHBOARD_HOME: elsewhere, SWITCHBOARD_KEY: 'sbk_of-another-machine' };
    const { stderr } = await runCli(['whoami', '--url', `http://127.0.0.1:${port}`], { env });
    expect(await heard).toEqual(['Bearer sbk_of-another-machine']);
    expect(stderr).toMatch(/^warning: .*another user of this machine. It gets your requests and your key/);
    expect(stderr).not.toContain('sbk_');
    other.kill();
    await once(other, 'close');
  });
});

describe('without a valid key', () => {
  it('commands of the user of Switchboard work', async () => {
    const me = await done('whoami');
    expect(me).toMatch(/^kind +local$/m);
    expect(me).toMatch(/^roles +admin in all projects$/m);
    expect(me).toMatch(/^authentication +on: every request needs a key$/m);
  });

  it.each([['whoami', 'ls', '/'].slice(0, 1), ['ls', 'tools'], ['call', 'echo', 'text=x'], ['watch']])(
    'others fail, and say what to do: %s %s',
    async (...words) => {
      const none = await cliWith('', ...words);
      expect([none.code, none.stdout]).toEqual([1, '']);
      expect(none.stderr).toContain('switchboard key add');
      expect(none.stderr).toContain('Commands send the key in the environment variable SWITCHBOARD_KEY.');
      const unknown = await cliWith(`sbk_${'A'.repeat(55)}`, ...words);
      expect([unknown.code, unknown.stdout]).toEqual([1, '']);
      expect(unknown.stderr).toContain('The command sent the key in SWITCHBOARD_KEY');
      expect(unknown.stderr).not.toContain('AAAAAA');
    },
  );

  it('the bridge tells its client and its user what to set', async () => {
    const program = bridgeProgram(switchboard.baseUrl, elsewhere, null);
    const env = { ...program.env, SWITCHBOARD_KEY: '' };
    await expect(connectStdio({ ...program, env })).rejects.toThrow(/requires a key: set SWITCHBOARD_KEY/);
    const { stderr } = await runCli(program.args.slice(1), { env });
    expect(stderr).toMatch(/^warning: This Switchboard requires a key.*\n.*SWITCHBOARD_KEY\.\n$/);
  });

  it('the bridge says so', async () => {
    const program = bridgeProgram(switchboard.baseUrl, elsewhere, null);
    const words = program.args.slice(1);
    const { stderr } = await runCli(words, { env: { ...program.env, SWITCHBOARD_KEY: 'sbk_x' } });
    expect(stderr).toContain('The command sent the key in SWITCHBOARD_KEY');
  });
});

describe('roles, groups and rules', () => {
  it('decide what a key may do, as `can` says', async () => {
    const key = await addKey('worker', '-P', 'default', '--role', 'viewer');
    const call = ['worker', 'call', 'echo', '-P', 'default'];
    expect(await cli('can', ...call)).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^no: .*caller.*viewer/),
    });
    expect((await cliWith(key, 'call', 'echo', 'text=x')).code).toBe(1);

    expect(await done('group', 'add', 'workers', '--description', 'Who works')).toBe('added group workers\n');
    await done('group', 'join', 'workers', 'worker');
    expect(await done('group', 'ls')).toBe('workers  1 member: worker  Who works\n');
    expect(await done('role', 'grant', 'caller', 'group:workers', '-P', 'default')).toBe(
      'group:workers has the role caller in default\n',
    );
    expect(await done('role', 'ls')).toMatch(/^group:workers +caller +in default$/m);
    expect(await done('can', ...call)).toMatch(/^yes: .*\nrole: caller\n$/);
    expect((await cliWith(key, 'call', 'echo', 'text=x')).code).toBe(0);

    const rule = await json<{ id: string }>('rule', 'deny', 'tool:box/ec*', '--for', 'group:workers');
    const answer = await cli('can', ...call);
    expect(answer.code).toBe(1);
    expect(answer.stdout).toMatch(
      new RegExp(`^no: .*\nrole: caller\nrule: deny .*workers.* \\(${rule.id}\\)\n$`),
    );
    expect((await cliWith(key, 'call', 'echo', 'text=x')).code).toBe(1);
    expect((await cliWith(key, 'call', 'pid')).code).toBe(0);
    expect(await done('rule', 'ls')).toContain(`${rule.id}  deny  for group:workers  tool:box/ec*`);
    const allowed = await json<{ id: string }>('rule', 'allow', 'tool:box/echo', '--for', 'worker');
    expect((await cli('can', ...call)).code).toBe(0);
    await done('rule', 'rm', allowed.id);
    await done('rule', 'rm', rule.id);
    expect((await cli('can', ...call)).code).toBe(0);

    await done('group', 'leave', 'workers', 'worker');
    expect((await cli('group', 'leave', 'workers', 'worker')).code).toBe(1);
    expect((await cli('can', ...call)).code).toBe(1);
    await done('role', 'grant', 'operator', 'worker', '-P', 'default');
    expect(await done('can', 'worker', 'operate', '-P', 'default')).toMatch(/^yes: /);
    await done('role', 'revoke', 'operator', 'worker', '-P', 'default');
    expect((await cli('can', 'worker', 'see', '-P', 'default')).code).toBe(1);
    await done('group', 'rm', 'workers', '-y');
    expect(await done('group', 'ls')).toBe('no groups\n');
  });

  it('say why an operator may not use something', async () => {
    const key = await addKey('operator', '-P', 'default', '--role', 'operator');
    const { id } = await json<{ id: string }>(
      'rule',
      'deny',
      'box/pid',
      '--for',
      'operator',
      '-P',
      'default',
    );
    const { code, stderr } = await cliWith(key, 'call', 'pid');
    expect(code).toBe(1);
    expect(stderr).toContain(`switchboard rule rm ${id}`);
    await done('rule', 'rm', id);
  });

  it('are explained by the table of roles', async () => {
    const table = await done('role', 'table');
    expect(table).toMatch(/^ +viewer +caller +operator +owner +admin$/m);
    expect(table).toMatch(/^call +– +yes +yes +yes +yes +may call tools/m);
    expect(table).toMatch(/^administer +– +– +– +– +yes +may /m);
  });

  it('reject what makes no sense', async () => {
    for (const words of [
      ['role', 'grant', 'king', 'x'],
      ['rule', 'deny', 'box'],
      ['rule', 'deny', '*', '--for', 'role:king'],
      ['key', 'add', 'x', '--role', 'caller', '--expires', 'soon'],
      ['limit', 'set'],
    ])
      expect((await cli(...words)).code).toBe(2);
    expect((await cli('can', 'nobody', 'call', 'echo')).code).toBe(1);
    expect((await cli('role', 'revoke', 'owner', 'group:nobody')).code).toBe(1);
  });
});

describe('limits', () => {
  it('apply to a key, and say so', async () => {
    const key = await addKey('busy', '-P', 'default', '--role', 'caller');
    const words = ['--per-minute', '1', '--for', 'busy', '--tool', 'box/*'];
    const { id } = await json<{ id: string }>('limit', 'set', ...words);
    expect(await done('limit', 'ls')).toBe(
      `${id}  1 per minute  for busy  in all projects  calls of box/*\n`,
    );
    expect((await cliWith(key, 'call', 'pid', '{}')).code).toBe(0);
    const { code, stderr } = await cliWith(key, 'call', 'pid', '{}');
    expect(code).toBe(1);
    expect(stderr).toMatch(/limit .*try again in \d+ seconds?.*switchboard limit ls/s);
    expect(await done('limit', 'rm', id)).toBe(`removed limit ${id}\n`);
    expect((await cliWith(key, 'call', 'pid', '{}')).code).toBe(0);
  });
});

describe('the audit log', () => {
  it('has what was done and denied, and is verified', async () => {
    const key = await addKey('noted', '-P', 'default', '--role', 'caller');
    expect((await cliWith(key, 'server', 'rm', 'box')).code).toBe(1);
    const rows = await done('audit', '-P', 'default', '--action', 'key', '--since', '1h');
    expect(rows).toMatch(/local user +done +key\.create +default .*noted/);
    await using following = follow('audit', '--outcome', 'denied');
    const denied = await following.lines.first((line) => line.includes('noted'));
    expect(JSON.parse(denied)).toMatchObject({ outcome: 'denied', actor: { name: 'noted' } });
    const lines = (await done('audit', '--json')).trim().split('\n');
    const sequence = lines.map((line) => (JSON.parse(line) as { seq: number }).seq);
    expect(sequence).toEqual(sequence.toSorted((one, other) => one - other));
    for (const words of [
      ['-P', 'nope'],
      ['--principal', 'nope'],
    ]) {
      const { code, stderr } = await cli('audit', ...words);
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/^error: There is no (?:project|key) "nope"/),
      ]);
    }
    expect(await done('audit', '--verify')).toMatch(
      /^\d+ entries, none of them changed\nhead [0-9a-f]{64}\n$/,
    );
  });
});

const identity = makeIdentity();

describe.skipIf(identity === undefined)('with TLS (needs openssl for the certificate)', () => {
  it('commands of the same machine trust the owner of the port, and the address must say https', async () => {
    await using folder = await temporaryFolder();
    const [cert, key] = [join(folder.path, 'cert.pem'), join(folder.path, 'key.pem')];
    await Promise.all([writeFile(cert, identity!.cert), writeFile(key, identity!.key)]);
    const args = ['--public-url', 'https://sb.example', '--tls-cert', cert, '--tls-key', key];
    await using secure = await startSwitchboard({ box }, {}, { args, database: 'shared' });
    expect(secure.baseUrl).toMatch(/^https:/);
    const listening = await secure.event(({ event }) => event === 'listening');
    expect(listening).toMatchObject({ public_url: 'https://sb.example', auth: true });
    const env = { SWITCHBOARD_HOME: secure.home, SWITCHBOARD_KEY: '' };
    const at = (url: string, ...words: string[]) => runCli([...words, '--url', url], { env });
    expect((await at(secure.baseUrl, 'whoami')).stdout).toMatch(/^kind +local$/m);
    expect(await at(secure.baseUrl, 'call', 'echo', 'text=hi')).toMatchObject({ code: 0, stdout: 'hi\n' });
    const plain = secure.baseUrl.replace('https:', 'http:');
    for (const words of [['whoami'], ['ls'], ['stdio'], ['watch']]) {
      const { code, stderr } = await at(plain, ...words);
      expect({ words, code, stderr }).toEqual({
        ...{
          words,
          code: 3,
          stderr: `error: The program at ${plain} uses TLS: use ${secure.baseUrl} instead.\n`,
        },
      });
    }
    const named = secure.baseUrl.replace('127.0.0.1', 'localhost');
    expect((await at(named, 'whoami')).stderr).toContain(`The certificate of ${named} is not trusted`);
    const added = await at(secure.baseUrl, 'key', 'add', 'far', '-P', 'default', '--role', 'caller');
    expect(added.stderr).toContain('"url":"https://sb.example/mcp/default"');
    const project = await at(secure.baseUrl, 'project', 'add', 'distant');
    expect(project.stdout).toContain('clients reach it at https://sb.example/mcp/distant\n');
    const far = {
      SWITCHBOARD_HOME: elsewhere,
      SWITCHBOARD_KEY: added.stdout.trim(),
      NODE_EXTRA_CA_CERTS: cert,
    };
    const checked = await runCli(['call', 'echo', 'text=checked', '--url', named], { env: far });
    expect(checked).toEqual({ code: 0, stdout: 'checked\n', stderr: '' });
    await using connected = await connectStdio(bridgeProgram(secure.baseUrl, secure.home, null));
    const result = await connected.client.callTool({ name: 'echo', arguments: { text: 'secure' } });
    expect(textOf(result)).toBe('secure');
  });
});
