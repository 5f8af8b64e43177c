import { describe, expect, it } from 'vitest';
import { runWith } from '../../../test/helpers/cli-api.ts';
import type { IssuedKey, KeyView } from '../../api/access-views.ts';
import { keyState } from './text.ts';

const text = 'sbk_0123456789ab0123456789012345678901234567890123456789012';
const now = new Date('2030-01-01T00:00:00Z');

function keyView(otherwise: Partial<KeyView> = {}): KeyView {
  return {
    id: '0190f3a0-0000-7000-8000-000000000001',
    name: 'ci',
    project: { id: '0190f3a0-0000-7000-8000-000000000002', name: 'research' },
    role: 'caller',
    expires_at: '2130-01-01T00:00:00.000Z',
    created_at: '2030-01-01T00:00:00.000Z',
    last_used_at: null,
    secrets: [secret('0123456789ab', null)],
    ...otherwise,
  };
}

function secret(id: string, expires_at: string | null): KeyView['secrets'][number] {
  return { id, created_at: '2030-01-01T00:00:00.000Z', expires_at, last_used_at: null };
}

const issued: IssuedKey = { ...keyView(), key: text };
const surroundings = { 'GET /whoami': { authentication: true }, 'GET /status': { public_url: null } };

describe('switchboard key', () => {
  it('prints a new key alone on stdout, and what to do with it on stderr', async () => {
    const answers = { ...surroundings, 'POST /keys': issued };
    const words = ['key', 'add', 'ci', '-P', 'research', '--role', 'caller'];
    const { code, stdout, stderr, requests } = await runWith(answers, ...words);
    expect([code, stdout]).toEqual([0, `${text}\n`]);
    expect(stderr).not.toContain(text);
    expect(stderr).toContain(
      'The key ci has the role caller in the project research. It expires: 2130-01-01',
    );
    expect(stderr).toContain('not shown again');
    expect(stderr).toMatch(/"url":"http:[^"]*\/mcp\/research","headers":\{"Authorization":"Bearer <key>"\}/);
    expect(stderr).not.toContain('does not ask for keys');
    const [, , added = ''] = requests;
    const body = JSON.parse(added.replace('POST /keys ', '')) as Record<string, string>;
    expect(body).toMatchObject({ name: 'ci', project: 'research', role: 'caller' });
    const days = (Date.parse(body.expires_at!) - Date.now()) / 86_400_000;
    expect(Math.round(days)).toBe(90);
  });

  it('says that a key is for all projects, and that keys are not asked for yet', async () => {
    const everywhere = { ...issued, project: null, expires_at: null };
    const status = { public_url: 'https://sb.example' };
    const answers = {
      'GET /whoami': { authentication: false },
      'GET /status': status,
      'POST /keys': everywhere,
    };
    const words = ['key', 'add', 'ci', '--role', 'admin', '--expires', 'never'];
    const { stderr, requests } = await runWith(answers, ...words);
    expect(requests.at(-1)).toBe('POST /keys {"name":"ci","role":"admin","expires_at":null}');
    expect(stderr).toContain('has the role caller in all projects. It expires: never.');
    expect(stderr).toContain('"url":"https://sb.example/mcp"');
    expect(stderr).toContain('note: This Switchboard does not ask for keys yet');
  });

  it('prints everything as JSON', async () => {
    const { stdout, stderr } = await runWith(
      { 'POST /keys': issued },
      'key',
      'add',
      'ci',
      '--role',
      'caller',
      '--json',
    );
    expect([JSON.parse(stdout), stderr]).toEqual([issued, '']);
  });

  it('makes no key if its use cannot be explained, or if the options are wrong', async () => {
    expect(
      (await runWith({ 'POST /keys': issued }, 'key', 'add', 'ci', '--role', 'caller')).requests,
    ).toEqual(['GET /whoami']);
    for (const words of [['--role', 'king'], [], ['--role', 'caller', '--expires', '2020-01-01']]) {
      expect(await runWith({}, 'key', 'add', 'ci', ...words)).toMatchObject({ code: 2, requests: [] });
    }
  });

  it('lists, shows and changes keys', async () => {
    const keys = [keyView(), keyView({ name: 'old', project: null, expires_at: '2020-01-01T00:00:00.000Z' })];
    const { stdout } = await runWith(
      { 'GET /keys?project=research': { keys } },
      'key',
      'ls',
      '-P',
      'research',
    );
    expect(stdout.split('\n')).toEqual([
      expect.stringMatching(/^ci +research +caller +expires in \d+ days +never used +active$/),
      expect.stringMatching(/^old +all projects +caller +expired +never used +expired$/),
      '',
    ]);
    const shown = await runWith({ 'GET /keys/research%2Fci': keyView() }, 'key', 'show', 'research/ci');
    expect(shown.stdout).toMatch(/^secrets +sbk_0123456789ab…, made /m);
    const changed = await runWith(
      { 'PATCH /keys/ci': keyView() },
      'key',
      'set',
      'ci',
      '--name',
      'b',
      '--expires',
      'never',
    );
    expect(changed.requests).toEqual(['PATCH /keys/ci {"name":"b","expires_at":null}']);
    expect(await runWith({}, 'key', 'set', 'ci')).toMatchObject({ code: 2, requests: [] });
  });

  it('rotates a key, and says how long the old one works', async () => {
    const soon = new Date(Date.now() + 3 * 3_600_000 + 30_000).toISOString();
    const rotated = { ...issued, secrets: [secret('b', null), secret('a', soon)] };
    const done = await runWith({ 'POST /keys/ci/rotate': rotated }, 'key', 'rotate', 'ci');
    expect(done).toMatchObject({
      code: 0,
      stdout: `${text}\n`,
      requests: ['POST /keys/ci/rotate {"overlap_ms":86400000}'],
    });
    expect(done.stderr).toContain('The old one works until it ends in 3 h.');
    const words = ['key', 'rotate', 'ci', '--overlap', '0', '--expires', 'never'];
    const atOnce = await runWith({ 'POST /keys/ci/rotate': issued }, ...words);
    expect(atOnce.requests).toEqual(['POST /keys/ci/rotate {"overlap_ms":0,"expires_at":null}']);
    expect(atOnce.stderr).toContain('The old one has ended.');
  });

  it('revokes a key', async () => {
    const { id } = issued;
    const answers = { 'GET /keys/ci': keyView(), [`DELETE /keys/${id}`]: null };
    const done = await runWith(answers, 'key', 'revoke', 'ci', '-y');
    expect(done).toMatchObject({ code: 0, stdout: 'revoked key ci\n' });
    const unknown = await runWith(answers, 'key', 'revoke', 'nobody', '-y');
    expect(unknown).toMatchObject({ code: 1, requests: ['GET /keys/nobody'] });
  });

  it.each(['sbk_0123456789ab', 'sbk_0123456789ab…', '0123456789ab'])(
    'finds a key by %s',
    async (publicId) => {
      const { id } = issued;
      const answers = {
        'GET /keys': { keys: [keyView({ id: 'other', secrets: [secret('other', null)] }), keyView()] },
        [`GET /keys/${id}`]: keyView(),
        [`PATCH /keys/${id}`]: keyView(),
        [`POST /keys/${id}/rotate`]: issued,
        [`DELETE /keys/${id}`]: null,
      };
      for (const words of [['show'], ['set', '--name', 'b'], ['rotate'], ['revoke', '-y']]) {
        expect(await runWith(answers, 'key', ...words, publicId)).toMatchObject({ code: 0 });
      }
    },
  );

  it('prefers a name to a public id, and says if there is neither', async () => {
    const answers = { 'GET /keys/production-1': keyView(), 'GET /keys': { keys: [] } };
    const named = await runWith(answers, 'key', 'show', 'production-1');
    expect(named).toMatchObject({ code: 0, requests: ['GET /keys/production-1'] });
    const none = await runWith(answers, 'key', 'show', 'sbk_aaaaaaaaaaaa');
    expect(none).toMatchObject({ code: 1, requests: ['GET /keys'] });
    expect(none.stderr).toBe('error: There is no key with the public id aaaaaaaaaaaa.\n');
  });

  it.each([
    ['key', 'show'],
    ['key', 'rotate'],
    ['key', 'revoke', '-y'],
    ['group', 'join', 'x'],
    ['role', 'grant', 'viewer'],
    ['rule', 'deny', '*', '--for'],
  ])('does not send a whole key that is given as a name: %s %s', async (...words) => {
    const { code, stderr, requests } = await runWith({}, ...words, text);
    expect([code, requests]).toEqual([2, []]);
    expect(stderr).toContain('sbk_0123456789ab… is a whole key. It was not sent.');
    expect(stderr).not.toContain(text);
  });
});

it('a key is active, being rotated, or expired', () => {
  const [past, future] = ['2029-01-01T00:00:00.000Z', '2031-01-01T00:00:00.000Z'];
  const stateOf = (key: Partial<KeyView>) => keyState(keyView(key), now);
  expect(stateOf({})).toBe('active');
  expect(stateOf({ secrets: [secret('b', null), secret('a', future)] })).toBe('rotating');
  expect(stateOf({ secrets: [secret('b', null), secret('a', past)] })).toBe('active');
  expect(stateOf({ expires_at: past })).toBe('expired');
});
